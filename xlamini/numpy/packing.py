"""Bits packed into bytes, and unpacked; and the bytes of elements in the other order."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import aval_of, issubdtype
from xlamini.numpy.arguments import as_axis, as_index, as_operand
from xlamini.numpy.reductions import nonzero_mask
from xlamini.primitives import (
    BOOL,
    INTEGER,
    bitcast_convert_type,
    convert,
    imag,
    in_dtype,
    kind_of,
    moveaxis,
    real,
    reshape,
    rev,
    slice_in_dim,
    sum_over,
)
from xlamini.primitives.base import operators
from xlamini.primitives.elementwise.complex import complex
from xlamini.primitives.shape.iota import iota
from xlamini.primitives.shape.pad import pad
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike

_BYTE = np.dtype("uint8")


@composite(static=("axis", "bitorder"))
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Eight elements of an axis after the other as the bits of one byte, each 1 where the element is not 0.

    The last byte is filled with zeros; with axis None `a` is flattened. The first element is the highest bit, or
    with bitorder "little" the lowest. TypeError for other elements than integers and bools.

    >>> packbits(jnp.array([1, 0, 1]))
    Array([160], dtype=uint8)
    """
    x = as_operand("packbits", a)
    kind = kind_of(aval_of(x).dtype)
    if kind is None or kind not in INTEGER | BOOL:
        raise TypeError(f"packbits: integers or bools are needed, got {aval_of(x).dtype}; compare with 0 first")
    bits, axis = _bits_last("packbits", convert(nonzero_mask("packbits", x), _BYTE), axis)
    *outer, length = aval_of(bits).shape
    padded = pad(bits, in_dtype(0, _BYTE), [(0, 0, 0)] * len(outer) + [(0, -length % 8, 0)])
    groups = reshape(padded, (*outer, -(-length // 8), 8))
    packed = sum_over(operators.left_shift(groups, _places(bitorder, "packbits")), (len(outer) + 1,))
    return moveaxis(convert(packed, _BYTE), len(outer), axis)


@composite(static=("axis", "count", "bitorder"))
def unpackbits(
    a: ArrayLike, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """The bits of bytes as elements 0 and 1, the highest first, or with bitorder "little" the lowest.

    `count` is the number of bits to return along the axis, padded with zeros; a negative one is the number to drop.
    With axis None `a` is flattened. TypeError for another dtype than uint8.

    >>> unpackbits(jnp.array([5], "uint8"))
    Array([0, 0, 0, 0, 0, 1, 0, 1], dtype=uint8)
    """
    x = as_operand("unpackbits", a)
    if aval_of(x).dtype != _BYTE:
        raise TypeError(f"unpackbits: the dtype must be uint8, got {aval_of(x).dtype}; convert with .astype('uint8')")
    packed, axis = _bits_last("unpackbits", x, axis)
    *outer, length = aval_of(packed).shape
    masks = operators.left_shift(in_dtype(1, _BYTE), _places(bitorder, "unpackbits"))  # CPUs shift no vectors of bytes
    spread = operators.not_equal(operators.bitwise_and(packed[..., None], masks), 0)
    bits = reshape(convert(spread, _BYTE), (*outer, 8 * length))
    return moveaxis(_of_length(bits, count), len(outer), axis)


@composite()
def byteswap(a: ArrayLike) -> Array:
    """The elements with their bytes in the other order; the parts of complex numbers each.

    >>> byteswap(jnp.array([1], "int16"))
    Array([256], dtype=int16)
    """
    x = as_operand("byteswap", a)
    aval = aval_of(x)
    if issubdtype(aval.dtype, np.complexfloating):
        return complex(byteswap(real(x)), byteswap(imag(x)))
    if aval.dtype.itemsize == 1:
        return x
    swapped = rev(bitcast_convert_type(x, _BYTE), (aval.ndim,))
    return in_dtype(bitcast_convert_type(swapped, aval.dtype), aval.dtype, aval.weak_type)


def _bits_last(name: str, x: Any, axis: int | None) -> tuple[Any, int]:
    """The array with its axis last, flattened if it is None, and the axis."""
    if axis is None:
        return reshape(x, (aval_of(x).size,)), 0
    axis = as_axis(name, axis, aval_of(x).ndim)
    return moveaxis(x, axis, aval_of(x).ndim - 1), axis


def _places(bitorder: str, name: str) -> Any:
    """The place of each of eight bits, counted from the lowest."""
    if bitorder not in ("big", "little"):
        raise ValueError(f"{name}: bitorder={bitorder!r}; it takes 'big' or 'little'")
    places = iota(_BYTE, 8)
    return places if bitorder == "little" else rev(places, (0,))


def _of_length(bits: Any, count: int | None) -> Any:
    if count is None:
        return bits
    length, last = aval_of(bits).shape[-1], aval_of(bits).ndim - 1
    kept = as_index("unpackbits", "count", count)
    kept = max(length + kept, 0) if kept < 0 else kept
    if kept <= length:
        return slice_in_dim(bits, 0, kept, axis=last)
    return pad(bits, in_dtype(0, _BYTE), [(0, 0, 0)] * last + [(0, kept - length, 0)])
