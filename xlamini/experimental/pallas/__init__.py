"""Kernels of one's own, for a TPU and for a GPU, under JAX's names: `pallas_call` and the language of kernels.

    from xlamini.experimental import pallas as pl

    def double(x, o):
        o[...] = 2 * x[...]

    pl.pallas_call(double, xlamini.ShapeDtypeStruct((8, 128), "float32"))(x)
"""

import xlamini.numpy.refs  # the refs that kernels take
from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
