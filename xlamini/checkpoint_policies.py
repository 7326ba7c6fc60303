"""Policies for `checkpoint(fun, policy=…)`: which values are kept for the way back."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
