"""DLPack: arrays of other libraries become Arrays, without a copy where their memory allows it.

The other direction needs no function here: an Array has `__dlpack__`, which `torch.from_dlpack` and its kin call.
"""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
