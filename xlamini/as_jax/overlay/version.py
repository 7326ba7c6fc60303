"""`jax.version`."""

from xlamini.core.version import JAX_VERSION as __version__

__version_info__ = (0, 10, 2)
