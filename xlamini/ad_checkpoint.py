"""checkpoint and what belongs to it: names for values, answers of policies, a look at what is kept."""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
