"""`jax._src.deprecations`: which of JAX's deprecations are errors; none is, as JAX's older names are not here."""

import warnings

from xlamini.as_jax.missing_names import fall_through

__getattr__ = fall_through(__name__)


def is_accelerated(deprecation_id: str) -> bool:
    """Whether a deprecation has been made an error."""
    return False


def warn(deprecation_id: str, message: str, stacklevel: int) -> None:
    """A DeprecationWarning."""
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel + 1)
