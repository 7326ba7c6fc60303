"""Solvers for matrices that are known by their products, under the names JAX users know as `jax.scipy.sparse`."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
