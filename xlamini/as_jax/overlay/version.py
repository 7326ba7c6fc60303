"""`jax.version`."""

from typing import Final

from xlamini.core.version import JAX_VERSION

__version__ = JAX_VERSION
__version_info__: Final = tuple(map(int, JAX_VERSION.split(".")))
