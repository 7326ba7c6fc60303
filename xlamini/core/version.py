"""The library's version, which saved programs carry, and that of the JAX whose names and meanings it has."""

__version__ = "0.1.0"
__version_info__ = (0, 1, 0)

JAX_VERSION = "0.10.2"
