"""Shardings: meshes of devices, partition specs, and the placement of arrays on them."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
