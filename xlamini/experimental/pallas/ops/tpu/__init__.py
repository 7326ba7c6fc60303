"""The operations that JAX has for TPUs. They run on a GPU and on a CPU too."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
