"""The operations that JAX has for GPUs. They run on a TPU and on a CPU too."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
