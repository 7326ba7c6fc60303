# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.experimental.pallas.ops.gpu import (
    attention as attention, decode_attention as decode_attention, layer_norm as layer_norm,
    paged_attention as paged_attention, rms_norm as rms_norm, softmax as softmax,
)
