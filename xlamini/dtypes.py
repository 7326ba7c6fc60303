"""dtypes: which there are, what they are called, how they combine."""

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
    """Whether the dtype or kind of dtypes `a` is one of the kind `b`: NumPy's function, which knows JAX's dtypes too.

    >>> issubdtype("bfloat16", np.floating), issubdtype(prng_key, extended)
    (True, True)
    """
    return _issubdtype(a, b)
