"""Segment reductions: segment_sum, segment_prod, segment_max, segment_min."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
