"""What a dtype can hold: its bits, its largest and smallest values, what may be cast to it."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from xlamini.core.caching.memo import memoised
from xlamini.core.dtypes.promotion import as_dtype
from xlamini.core.dtypes.table import scalar_types

_integer_limits = memoised("helper: limits of integer dtypes", None)(ml_dtypes.iinfo)


def itemsize_bits(dtype: Any) -> int:
    """How many bits an element holds: 4 for int4, 8 for bool.

    >>> itemsize_bits("int4"), itemsize_bits("bfloat16"), itemsize_bits(bool)
    (4, 16, 8)
    """
    found = as_dtype(dtype)
    kind = scalar_types.get(found)
    if kind is int:
        return iinfo(found).bits
    return ml_dtypes.finfo(found).bits if kind is float else 8 * found.itemsize


def finfo(dtype: Any) -> Any:
    """The limits of a floating dtype (`max`, `eps`, `tiny`, ...); a complex one has its parts'.

    >>> finfo("bfloat16").bits
    16
    """
    found = as_dtype(dtype)
    if scalar_types.get(found) not in (float, complex):
        raise ValueError(f"finfo is for float and complex dtypes, but got {found}; see iinfo")
    return ml_dtypes.finfo(found)


def iinfo(dtype: Any) -> Any:
    """The limits of an integer dtype (`min`, `max`, `bits`).

    >>> iinfo("int4").max
    7
    """
    found = as_dtype(type(dtype) if type(dtype) is int else dtype)
    if scalar_types.get(found) is not int:
        raise ValueError(f"iinfo is for integer dtypes, but got {found}; see finfo")
    return _integer_limits(found)


def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Whether NumPy's casting rule allows `from_` to become `to`; dtypes only, as they are.

    `casting` is "no", "equiv", "safe", "same_kind" or "unsafe".

    >>> can_cast("int8", "float32"), can_cast("float32", "int8"), can_cast("float32", "float16", "same_kind")
    (True, False, True)
    """
    return bool(np.can_cast(as_dtype(from_), as_dtype(to), casting))


def fits(value: int, dtype: Any) -> bool:
    """Whether a Python int is in the range of an integer `dtype`; True for other dtypes."""
    if 0 <= value <= 1 or scalar_types.get(dtype) is not int:
        return True
    limits = iinfo(dtype)
    return bool(limits.min <= value <= limits.max)


def check_fits(value: int, dtype: Any) -> None:
    """Raise OverflowError when a Python int is out of the range of an integer `dtype`."""
    if not fits(value, dtype):
        limits = iinfo(dtype)
        shown = str(value) if value.bit_length() <= 128 else f"of {value.bit_length()} bits"
        raise OverflowError(
            f"Python int {shown} does not fit in {dtype}, which holds "
            f"{limits.min} to {limits.max}; make it a wider integer or a float"
        )
