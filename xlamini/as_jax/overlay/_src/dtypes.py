"""`jax._src.dtypes`."""

import numpy as np

from xlamini.as_jax.missing_names import fall_through
from xlamini.core.dtypes import ExtendedDType as ExtendedDType, finfo as finfo
from xlamini.core.errors import TypePromotionError as TypePromotionError
from xlamini.typing import DTypeLike

__getattr__ = fall_through(__name__, "xlamini.dtypes")

DType = np.dtype


def supports_inf(dtype: DTypeLike) -> bool:
    """Whether a dtype of floats has infinities."""
    return bool(np.isinf(np.asarray(np.inf).astype(np.dtype(dtype)).astype(np.float64)))
