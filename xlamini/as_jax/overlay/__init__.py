"""The module `jax`: xlamini's names, under the version of the JAX whose names and meanings they are."""

from typing import Final

import xlamini
from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.version import __version__ as __version__, __version_info__ as __version_info__

__xlamini__: Final = xlamini.__version__
__all__ = vars(xlamini)["__all__"]  # pyright: ignore[reportUnsupportedDunderAll]
__getattr__: Final = fall_through(__name__)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
