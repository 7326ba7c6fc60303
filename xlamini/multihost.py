"""Values shared between processes: barriers, broadcasts, gathers, and arrays of one process or of all."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
