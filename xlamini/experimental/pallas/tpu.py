"""What kernels for a TPU have besides: its memories, its grid, and the parameters of its compiler, Mosaic."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
