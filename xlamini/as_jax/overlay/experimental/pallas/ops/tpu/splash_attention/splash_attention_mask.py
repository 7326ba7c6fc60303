"""`splash_attention_mask`: masks for `splash_attention_kernel`, which there is not."""

from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.refusals import refusing

__getattr__ = fall_through(__name__)

_INSTEAD = "use nn.dot_product_attention with a mask"

CausalMask = refusing("splash_attention_mask.CausalMask", _INSTEAD)
MultiHeadMask = refusing("splash_attention_mask.MultiHeadMask", _INSTEAD)
NumpyMask = refusing("splash_attention_mask.NumpyMask", _INSTEAD)
