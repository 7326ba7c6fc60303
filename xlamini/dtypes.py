"""Dtypes: extended types, names and limits, and type promotion."""

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
from xlamini.core.dtypes.table import bfloat16
from xlamini.core.errors import TypePromotionError

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
