"""Layouts of arrays in memory: of values inside programs, and those that arrays and compiled programs report."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
