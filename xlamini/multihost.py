"""Multi-process utilities: barriers, broadcasts, gathers, and conversion between host-local and global arrays."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
