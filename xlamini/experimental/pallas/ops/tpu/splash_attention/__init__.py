"""Attention with a mask for each head that is known when a program is traced: `make_splash_mha` and masks."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
