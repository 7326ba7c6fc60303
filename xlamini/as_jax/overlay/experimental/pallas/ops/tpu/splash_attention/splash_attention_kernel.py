"""`splash_attention_kernel`: attention on a TPU by a kernel, which there is not."""

from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.refusals import refusing

__getattr__ = fall_through(__name__)

_INSTEAD = "use nn.dot_product_attention"

SegmentIds = refusing("splash_attention_kernel.SegmentIds", _INSTEAD)
make_splash_mha = refusing("splash_attention_kernel.make_splash_mha", _INSTEAD)
