"""How values are ordered: integers that order as floats do, and the extremes of a dtype."""

from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core.dtypes import finfo, iinfo
from xlamini.core.tracer import aval_of, literal
from xlamini.primitives.bitwise import bitwise_xor
from xlamini.primitives.comparison import eq, lt, ne
from xlamini.primitives.complex import imag, real
from xlamini.primitives.convert import bitcast_convert_type, convert
from xlamini.primitives.elementwise import BOOL, COMPLEX, FLOAT, kind_of
from xlamini.primitives.select import where


def sort_keys(x: Any) -> list[Any]:
    """Integers in which the elements are in order: one array, or two for complex numbers, which go by real part first.

    0.0 and -0.0 are equal; NaNs are equal and come last.
    """
    kind = kind_of(aval_of(x).dtype)
    if kind is COMPLEX:
        return [_float_key(real(x)), _float_key(imag(x))]
    return [_float_key(x) if kind is FLOAT else convert(x, np.uint8) if kind is BOOL else x]


def _float_key(x: Any) -> Any:
    """The bits of the float as a signed integer, turned over where the sign is set."""
    if aval_of(x).dtype.itemsize < 4:
        x = convert(x, np.float32)
    dtype = aval_of(x).dtype
    integer = np.dtype(f"int{8 * dtype.itemsize}")
    x = where(eq(x, literal(0, dtype)), literal(0, dtype), x)
    x = where(ne(x, x), literal(np.nan, dtype), x)
    bits = bitcast_convert_type(x, integer)
    turned = bitwise_xor(bits, literal(iinfo(integer).max, integer))
    return where(lt(bits, literal(0, integer)), turned, bits)


def lowest(dtype: Any) -> Any:
    """The value that no other is smaller than: -inf where there is one."""
    return _extreme(dtype, -1)


def highest(dtype: Any) -> Any:
    """The value that no other is larger than: inf where there is one."""
    return _extreme(dtype, 1)


def _extreme(dtype: Any, sign: int) -> Any:
    kind = kind_of(dtype)
    if kind is BOOL:
        return sign > 0
    if kind is COMPLEX:
        return complex(sign * np.inf, sign * np.inf)
    limits = finfo(dtype) if kind is FLOAT else iinfo(dtype)
    infinity = np.asarray(np.inf).astype(dtype) if kind is FLOAT else np.asarray(0)
    if np.isinf(infinity):
        return sign * np.inf
    return limits.max if sign > 0 else limits.min
