"""Dtypes: extended types, names and limits, and type promotion."""

import ml_dtypes as _ml_dtypes

from xlamini.core import (
    canonicalize_dtype,
    finfo,
    float0,
    iinfo,
    issubdtype,
    itemsize_bits,
    result_type,
    scalar_type_of,
)
from xlamini.core.dtypes import extended, prng_key
from xlamini.core.errors import TypePromotionError

bfloat16 = _ml_dtypes.bfloat16
"""The scalar type of 16 bits with the exponent of float32 and 8 bits of precision; `jnp.bfloat16` makes an Array.

>>> jnp.array([1.0, 1.001], bfloat16)
Array([1, 1], dtype=bfloat16)
>>> float(bfloat16(1.001))
1.0
"""

__all__ = [
    "TypePromotionError",
    "bfloat16",
    "canonicalize_dtype",
    "extended",
    "finfo",
    "float0",
    "iinfo",
    "issubdtype",
    "itemsize_bits",
    "prng_key",
    "result_type",
    "scalar_type_of",
]

