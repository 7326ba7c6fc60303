"""Memories to put arrays into: `Space.Device` and `Space.Host`."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
