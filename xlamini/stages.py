"""The stages of a jitted function: `jit(f).trace(x)` -> Traced, `.lower()` -> Lowered, `.compile()` -> Compiled."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
