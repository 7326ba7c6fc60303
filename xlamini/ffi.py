"""Calls of compiled functions outside XLA, through XLA's foreign function interface (FFI): docs/ffi.md."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
