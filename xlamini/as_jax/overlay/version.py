"""`jax.version`."""

from xlamini.core.version import JAX_VERSION as __version__

__version_info__ = tuple(map(int, __version__.split(".")))
