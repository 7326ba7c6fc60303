"""`jax.version`."""

from xlamini.core.version import JAX_VERSION

__version__ = JAX_VERSION
__version_info__ = tuple(map(int, JAX_VERSION.split(".")))
