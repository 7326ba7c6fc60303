"""What kernels for a GPU have besides: masked loads and stores, atomics, and the parameters of its compiler, Triton."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
