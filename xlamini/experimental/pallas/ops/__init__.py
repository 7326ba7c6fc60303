"""Operations that are kernels, under JAX's names: `ops.gpu` and `ops.tpu`. Each runs on every platform."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
