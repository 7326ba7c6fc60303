# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.experimental.pallas.ops.tpu.flash_attention import SegmentIds as SegmentIds
from xlamini.experimental.pallas.ops.tpu.splash_attention import (
    splash_attention_kernel as splash_attention_kernel, splash_attention_mask as splash_attention_mask,
)
from xlamini.experimental.pallas.ops.tpu.splash_attention.splash_attention_kernel import (
    BlockSizes as BlockSizes, make_splash_mha as make_splash_mha,
    make_splash_mha_single_device as make_splash_mha_single_device, make_splash_mqa as make_splash_mqa,
    make_splash_mqa_single_device as make_splash_mqa_single_device,
)
from xlamini.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask import (
    CausalMask as CausalMask, FullMask as FullMask, LocalMask as LocalMask, Mask as Mask,
    MultiHeadMask as MultiHeadMask, NumpyMask as NumpyMask, make_causal_mask as make_causal_mask,
    make_local_attention_mask as make_local_attention_mask,
)
