"""Policies for `checkpoint(fun, policy=…)`: which residuals are saved for the backward pass."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
