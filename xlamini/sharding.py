"""Shardings: meshes of devices, and how arrays are split over them."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
