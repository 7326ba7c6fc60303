"""The order of values: integers that order as floats do, and the extremes of a dtype."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xlamini.core import aval_of, finfo, iinfo, literal
from xlamini.primitives.base.dtype_kinds import BOOL, COMPLEX, FLOAT, SIGNED, UNSIGNED, kind_of
from xlamini.primitives.elementwise.arithmetic import add, sub
from xlamini.primitives.elementwise.bitwise import bitwise_not, bitwise_xor, shift_right_logical
from xlamini.primitives.elementwise.comparison import eq, lt, ne
from xlamini.primitives.elementwise.complex import imag, real
from xlamini.primitives.elementwise.convert_element_type import bitcast_convert_type, convert
from xlamini.primitives.elementwise.select import where


def sort_keys(x: Any) -> list[Any]:
    """Integers in which the elements are in order: one array, or two for complex numbers, which go by real part first.

    0.0 and -0.0 are equal; NaNs are equal and come last.
    """
    kind = kind_of(aval_of(x).dtype)
    if kind is COMPLEX:
        return [_float_key(real(x)), _float_key(imag(x))]
    return [_float_key(x) if kind is FLOAT else convert(x, np.uint8) if kind is BOOL else x]


def ordered_values(x: Any) -> list[Any]:
    """What `sort_keys` orders by, as values that XLA's total order puts in order."""
    kind = kind_of(aval_of(x).dtype)
    if kind is COMPLEX:
        return [_canonical(real(x)), _canonical(imag(x))]
    return [_canonical(x) if kind is FLOAT else x]


def _canonical(x: Any) -> Any:
    """The float with one zero and one NaN."""
    if aval_of(x).dtype.itemsize < 2:  # whose NaNs and zeros differ from dtype to dtype
        x = convert(x, np.float32)
    dtype = aval_of(x).dtype
    x = where(eq(x, literal(0, dtype)), literal(0, dtype), x)
    return where(ne(x, x), literal(np.nan, dtype), x)


def _float_key(x: Any) -> Any:
    """The bits of the float as a signed integer, turned over where the sign is set."""
    x = _canonical(x)
    integer = np.dtype(f"int{8 * aval_of(x).dtype.itemsize}")
    bits = bitcast_convert_type(x, integer)
    turned = bitwise_xor(bits, literal(iinfo(integer).max, integer))
    return where(lt(bits, literal(0, integer)), turned, bits)


class Word(NamedTuple):
    """Unsigned integers, of which so many bits may be set."""

    values: Any
    bits: int


def sort_words(x: Any) -> list[Word]:
    """`sort_keys` as unsigned integers of at most 32 bits; the first are to be compared first."""
    return [half for key in sort_keys(x) for half in halves(bit_order(key))]


def halves(word: Word) -> list[Word]:
    """Order-preserving integers of at most 32 bits, in place of wider ones."""
    x, bits = word
    if bits <= 32:
        return [word]
    return [Word(convert(half, np.uint32), 32) for half in (shift_right_logical(x, literal(32, np.uint64)), x)]


def bit_order(x: Any) -> Word:
    """Unsigned integers in which real numbers are in order: -NaN, -inf, …, -0.0, 0.0, …, inf, NaN."""
    kind, bits = kind_of(aval_of(x).dtype), 8 * aval_of(x).dtype.itemsize
    if kind is BOOL:
        return Word(convert(x, np.uint8), 1)
    word = x if kind is UNSIGNED else bitcast_convert_type(x, f"uint{bits}")
    top = literal(1 << (bits - 1), aval_of(word).dtype)
    if kind is FLOAT:
        word = where(lt(word, top), bitwise_xor(word, top), bitwise_not(word))
    elif kind is SIGNED:
        word = bitwise_xor(word, top)
    return Word(word, bits)


def total_order(x: Any) -> Word:
    """The integers of `bit_order`, but with all NaNs last."""
    word, bits = bit_order(x)
    dtype = aval_of(x).dtype
    return Word(sub(word, _negative_nans(dtype)), bits) if kind_of(dtype) is FLOAT else Word(word, bits)


def from_total_order(word: Any, dtype: Any) -> Any:
    """The elements that `total_order` gives these integers for."""
    if kind_of(dtype) is BOOL:
        return convert(word, dtype)
    top = literal(1 << (8 * dtype.itemsize - 1), aval_of(word).dtype)
    if kind_of(dtype) is FLOAT:
        turned = add(word, _negative_nans(dtype))
        word = where(lt(turned, top), bitwise_not(turned), bitwise_xor(turned, top))
    elif kind_of(dtype) is SIGNED:
        word = bitwise_xor(word, top)
    return bitcast_convert_type(word, dtype)


def _negative_nans(dtype: Any) -> Any:
    """The number of NaNs with the sign bit set: these integers wrap around from below -inf to the end."""
    return literal((1 << finfo(dtype).nmant) - 1, np.dtype(f"uint{8 * dtype.itemsize}"))


def keys(x: Any, nan_is_largest: bool) -> Any:
    """Integers that compare as the elements do; those of NaN are beyond all others, at one end or at the other.

    On the CPU the largest float of many, as XLA finds it, is not NaN where one of them is.
    """
    dtype = aval_of(x).dtype
    if kind_of(dtype) is not FLOAT:
        return x
    integer = key_dtype(dtype)
    bits = bitcast_convert_type(x if dtype.itemsize > 1 else convert(x, np.float32), integer)
    nan = iinfo(integer).max if nan_is_largest else iinfo(integer).min + 1
    return where(ne(x, x), literal(nan, integer), _turned(bits))


def key_dtype(dtype: Any) -> np.dtype:
    """The dtype of the keys of elements of this dtype; floats of 8 bits have those of float32."""
    if kind_of(dtype) is not FLOAT:
        return dtype
    return np.dtype(f"int{8 * dtype.itemsize if dtype.itemsize > 1 else 32}")


def from_keys(found: Any, dtype: Any) -> Any:
    """The elements of this dtype that have these keys; NaN for keys beyond those of the infinities."""
    if kind_of(dtype) is not FLOAT:
        return found
    wide = np.dtype(np.float32) if dtype.itemsize < 2 else dtype
    return convert(bitcast_convert_type(_turned(found), wide), dtype)


def _turned(bits: Any) -> Any:
    """Bits of floats as signed integers in their order, 0.0 equal to -0.0; and back."""
    integer = aval_of(bits).dtype
    return where(lt(bits, literal(0, integer)), literal(iinfo(integer).min, integer) - bits, bits)


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
