"""Dtypes: extended types, names and limits, and type promotion."""

from typing import Any

from ml_dtypes import bfloat16

from xlamini.core.dtypes import (
    canonicalize_dtype,
    extended,
    finfo,
    float0,
    iinfo,
    itemsize_bits,
    prng_key,
    result_type,
    scalar_type_of,
)
from xlamini.core.dtypes import issubdtype as _issubdtype
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


def issubdtype(a: Any, b: Any) -> bool:
    """Whether `a`, a dtype or an abstract kind, is a subtype of `b`: NumPy's function, extended to JAX's dtypes.

    >>> issubdtype("bfloat16", np.floating), issubdtype(prng_key, extended)
    (True, True)
    """
    return _issubdtype(a, b)
