"""Checked programs: functions that also return the first check that failed, as a value."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
