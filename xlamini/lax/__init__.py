"""The operations that programs are made of, under the names JAX users know as `jax.lax`."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
