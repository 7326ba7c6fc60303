"""Frontend attributes for XLA on operations, `set_xla_metadata`, and on blocks of a program, `xla_metadata_call`."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
