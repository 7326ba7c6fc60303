"""User-defined derivative rules: `custom_jvp`, `custom_vjp`, `custom_gradient`, `closure_convert`."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
