"""User-defined batching rules: `custom_vmap`, and `sequential_vmap`, which batches by a loop."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
