"""Special functions, under the names JAX users know as `jax.scipy.special`."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
