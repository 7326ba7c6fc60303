"""`jax._src.deprecations`: which of JAX's deprecations are errors; none is until a library says so."""

import warnings

from xlamini.as_jax.missing_names import fall_through

__getattr__ = fall_through(__name__)

_accelerated: dict[str, bool] = {}


def register(deprecation_id: str) -> None:
    """Make a deprecation known."""
    _accelerated.setdefault(deprecation_id, False)


def accelerate(deprecation_id: str) -> None:
    """Let `is_accelerated` say so of a deprecation."""
    _accelerated[deprecation_id] = True


def is_accelerated(deprecation_id: str) -> bool:
    """Whether a deprecation has been made an error."""
    return _accelerated.get(deprecation_id, False)


def warn(deprecation_id: str, message: str, stacklevel: int) -> None:
    """A DeprecationWarning, or a ValueError for a deprecation that has been accelerated."""
    if is_accelerated(deprecation_id):
        raise ValueError(message)
    warnings.warn(message, DeprecationWarning, stacklevel=stacklevel + 1)
