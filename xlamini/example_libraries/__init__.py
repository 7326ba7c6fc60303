"""Small libraries for examples: layers (`stax`) and first-order optimizers (`optimizers`)."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
