"""Events: listeners for what programs and the library record, such as the times that compiling takes."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
