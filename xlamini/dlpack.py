"""DLPack: arrays of other libraries become Arrays, without a copy where their memory allows it.

The other direction needs no function here: an Array has `__dlpack__`, which `torch.from_dlpack` and its kin call.
"""

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.runtime.dlpack import from_dlpack as from_dlpack
from xlamini.runtime.dlpack import is_supported_dtype as is_supported_dtype

__all__ = ["from_dlpack", "is_supported_dtype"]

_edge_of_face(globals())
