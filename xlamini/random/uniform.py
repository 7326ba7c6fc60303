"""Random bits, and the uniform floats made of them: as many bits as the mantissa holds, under the exponent of 1."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import Shape, aval_of, finfo, literal
from xlamini.primitives import (
    bitcast_convert_type,
    bitwise_or,
    broadcast_to,
    convert,
    in_dtype,
    index_in_dim,
    max as maximum,
    reshape,
)
from xlamini.primitives.elementwise.bitwise import shift_right_logical
from xlamini.primitives.random.random_keys import bits_p
from xlamini.random.arguments import broadcast_shape, checked_dtype, checked_shape, float_dtype, sampler
from xlamini.runtime import Array

_NUMBERS = (bool, int, float, np.number)


@sampler("shape", "dtype")
def bits(key: Any, shape: Any = (), dtype: Any = None) -> Array:
    """Random bits as unsigned integers, by default as wide as Python's int.

    >>> xlamini.random.bits(xlamini.random.key(0), (3,))
    Array([4070199207, 4202968722, 1427181096], dtype=uint32)
    """
    kind = checked_dtype("bits", dtype, np.uint64, np.unsignedinteger, "an unsigned integer dtype such as 'uint32'")
    return bits_p.bind(key, bit_width=kind.itemsize * 8, shape=checked_shape("bits", shape))


@sampler("shape", "dtype")
def uniform(key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0) -> Array:
    """Floats from [minval, maxval), each as likely as the next; the bounds broadcast to `shape`.

    Where `shape` is (), bounds of one element may have more dimensions; the result has those of `minval`, as in JAX.

    Raises ValueError for a dtype that is no float, and for bounds that do not broadcast to `shape`.

    >>> xlamini.random.uniform(xlamini.random.key(0), (3,))
    Array([0.947667  , 0.9785799 , 0.33229148], dtype=float32)
    """
    found = float_dtype("uniform", dtype)
    shape = checked_shape("uniform", shape)
    bounds = [aval_of(x) for x in (minval, maxval)]
    if not shape and any(a.ndim for a in bounds) and all(a.size == 1 for a in bounds):
        minval, maxval = (reshape(x, ()) for x in (minval, maxval))
        return reshape(uniform_between(key, shape, found, minval, maxval), bounds[0].shape)
    broadcast_shape("uniform", shape, minval=minval, maxval=maxval)
    return uniform_between(key, shape, found, minval, maxval)


def uniform_between(key: Any, shape: Shape, dtype: np.dtype, low: Any, high: Any) -> Any:
    """Uniform floats for arguments that have been checked; numbers as bounds make a shorter program."""
    floats = _unit(key, shape, dtype)
    if isinstance(low, _NUMBERS) and isinstance(high, _NUMBERS):
        low, high = dtype.type(low), dtype.type(high)
        if low == 0 and high == 1:
            return floats
        with np.errstate(over="ignore"):
            span = high - low
        if np.isfinite(span):
            return maximum(literal(low), floats * literal(span) + literal(low))
        low, high = literal(low), literal(high)
    low, high = (broadcast_to(in_dtype(x, dtype), shape) for x in (low, high))
    # Of halves, whose difference does not overflow.
    return maximum(low, 2 * (floats * (high / 2 - low / 2) + low / 2))


def _unit(key: Any, shape: Shape, dtype: np.dtype) -> Any:
    """Uniform floats from [0, 1)."""
    width, mantissa = dtype.itemsize * 8, finfo(dtype).nmant
    drawn = 8 if mantissa < 8 else width
    words = np.dtype(f"uint{width}")
    random = convert(bits_p.bind(key, bit_width=drawn, shape=shape), words)
    exponent = literal(np.ones((), dtype).view(words)[()])
    between_1_and_2 = bitwise_or(shift_right_logical(random, literal(drawn - mantissa, words)), exponent)
    return bitcast_convert_type(between_1_and_2, dtype) - literal(1, dtype)


def halves(pair: Any) -> list[Any]:
    """The two arrays, or keys, along the leading axis."""
    return [index_in_dim(pair, i, keepdims=False) for i in range(2)]


def thirds(triple: Any) -> list[Any]:
    """The three arrays, or keys, along the leading axis."""
    return [index_in_dim(triple, i, keepdims=False) for i in range(3)]
