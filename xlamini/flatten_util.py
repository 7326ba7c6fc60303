"""Flattening of a pytree of arrays into one vector, with the inverse function: `ravel_pytree`."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
