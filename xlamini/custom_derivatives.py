"""Derivatives of the user's own: `custom_jvp`, `custom_vjp` and their kin."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
