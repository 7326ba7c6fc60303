"""The folder of compiled programs: its entries and statistics, why a program misses it, and how to clear it."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
