"""`jax._src.lax.utils`: dtypes of indices."""

from collections.abc import Sequence

import numpy as np

from xlamini.as_jax.missing_names import fall_through

__getattr__ = fall_through(__name__)


def int_dtype_for_dim(d: int, *, signed: bool) -> np.dtype:
    """A dtype of 32 bits that holds the size, or else one of 64 bits."""
    narrow, wide = (np.int32, np.int64) if signed else (np.uint32, np.uint64)
    return np.dtype(narrow if d <= np.iinfo(narrow).max else wide)


def int_dtype_for_shape(shape: Sequence[int], *, signed: bool) -> np.dtype:
    """A dtype of 32 bits that holds all sizes of a shape, or else one of 64 bits."""
    return int_dtype_for_dim(max(shape, default=0), signed=signed)
