"""The module `jax`: xlamini's names, under the version of the JAX whose names and meanings they are."""

import xlamini
from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.version import __version__ as __version__, __version_info__ as __version_info__

__xlamini__ = xlamini.__version__
__all__ = vars(xlamini)["__all__"]  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__ = fall_through(__name__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
