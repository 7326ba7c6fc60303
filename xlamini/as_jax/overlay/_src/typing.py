"""`jax._src.typing`: the types of annotations."""

import numpy as np

from xlamini import Array as Array
from xlamini.as_jax.missing_names import fall_through

__getattr__ = fall_through(__name__)

DType = np.dtype
Shape = tuple[int, ...]
