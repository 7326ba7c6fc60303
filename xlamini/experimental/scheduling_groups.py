"""Groups of operations that XLA schedules together: `scheduling_group`."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
