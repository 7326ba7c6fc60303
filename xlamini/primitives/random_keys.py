"""The primitives of random keys: what makes keys, what keys make.

Rewrites and printing know keys as values of dtype `key<fry>`; a rule `physical` says what a primitive does to the words
that keys are made of. Numbers are drawn by counting: element i of what a key makes is the hash of the key and the
number i.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core.avals import Shape, ShapedArray
from xlamini.core.primitive import Axis, Primitive
from xlamini.core.tangents import Zero, tangent_aval
from xlamini.core.tracer import aval_of, literal
from xlamini.primitives.batch_ops import with_batch_first
from xlamini.primitives.bitwise import bitwise_or, bitwise_xor, shift_left, shift_right_logical
from xlamini.primitives.concatenate import concatenate
from xlamini.primitives.convert import convert
from xlamini.primitives.iota import iota, iota_p
from xlamini.primitives.optimization_barrier import optimization_barrier
from xlamini.primitives.shape import broadcast_in_dim, expand_dims, reshape
from xlamini.primitives.slice import index_in_dim
from xlamini.primitives.threefry import threefry2x32
from xlamini.runtime.keys import Generator, KeyType

THREEFRY = Generator("threefry2x32", "fry", 2)
FRY = KeyType(THREEFRY)
"""The dtype of the keys of the default generator."""

_UINT32, _UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)


class KeyPrimitive(Primitive):
    """Nothing about keys can be differentiated; a batch of keys is an array of keys with another leading dimension."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self.bind(*primals, **params)
        return out, Zero(tangent_aval(aval_of(out)))

    def batch(self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        return self.bind(*with_batch_first(operands, dims, axis.size), **params), 0

    def lower(self, ctx: Any, *operands: Any, **params: Any) -> Any:
        raise TypeError(f"{self.name} is lowered in its physical form only; see interpreters/physical.py")


class Seed(KeyPrimitive):
    """Keys from integers."""

    name = "random_seed"

    def shape_rule(self, seeds: ShapedArray, *, impl: Generator) -> ShapedArray:
        return ShapedArray(seeds.shape, KeyType(impl))

    def physical(self, operands: Sequence[Any], *, impl: Generator) -> Any:
        (seeds,) = operands
        dtype = aval_of(seeds).dtype
        low = convert(seeds, _UINT32)
        if dtype.itemsize < 8:
            return _stacked(broadcast_in_dim(_word(0), low.shape, ()), low)
        high = shift_right_logical(seeds, literal(32, dtype))
        return _stacked(convert(high, _UINT32), low)


class Wrap(KeyPrimitive):
    """Keys from their words, which lie along the last dimension."""

    name = "random_wrap"

    def shape_rule(self, words: ShapedArray, *, impl: Generator) -> ShapedArray:
        return ShapedArray(words.shape[:-1], KeyType(impl))

    def physical(self, operands: Sequence[Any], *, impl: Generator) -> Any:
        return operands[0]


class Unwrap(KeyPrimitive):
    """The words of keys."""

    name = "random_unwrap"

    def shape_rule(self, keys: ShapedArray) -> ShapedArray:
        return ShapedArray((*keys.shape, *keys.dtype.physical_shape), keys.dtype.physical_dtype)

    def physical(self, operands: Sequence[Any]) -> Any:
        return operands[0]


class Clone(KeyPrimitive):
    """The same keys, as far as checks against using a key twice are concerned new ones."""

    name = "random_clone"

    def shape_rule(self, keys: ShapedArray) -> ShapedArray:
        return keys

    def physical(self, operands: Sequence[Any]) -> Any:
        return operands[0]


class Split(KeyPrimitive):
    """From each key an array of new keys."""

    name = "random_split"

    def shape_rule(self, keys: ShapedArray, *, shape: Shape) -> ShapedArray:
        return keys.update(shape=(*keys.shape, *shape))

    def physical(self, operands: Sequence[Any], *, shape: Shape) -> Any:
        # Else XLA would compute a key again, in full, within each loop that draws from it.
        return optimization_barrier(_stacked(*_hashed(operands[0], shape)))


class FoldIn(KeyPrimitive):
    """From each key and a uint32 a new key."""

    name = "random_fold_in"

    def shape_rule(self, keys: ShapedArray, data: ShapedArray) -> ShapedArray:
        return keys

    def physical(self, operands: Sequence[Any]) -> Any:
        words, data = operands
        return optimization_barrier(_stacked(*threefry2x32(_columns(words), (_word(0), data))))


class Bits(KeyPrimitive):
    """From each key an array of random unsigned integers of 8, 16, 32 or 64 bits."""

    name = "random_bits"

    def shape_rule(self, keys: ShapedArray, *, bit_width: int, shape: Shape) -> ShapedArray:
        return ShapedArray((*keys.shape, *shape), np.dtype(f"uint{bit_width}"))

    def physical(self, operands: Sequence[Any], *, bit_width: int, shape: Shape) -> Any:
        first, second = _hashed(operands[0], shape)
        if bit_width == 64:
            high, low = convert(first, _UINT64), convert(second, _UINT64)
            return bitwise_or(shift_left(high, literal(32, _UINT64)), low)
        return convert(bitwise_xor(first, second), np.dtype(f"uint{bit_width}"))


seed_p, wrap_p, unwrap_p, clone_p = Seed(), Wrap(), Unwrap(), Clone()
split_p, fold_in_p, bits_p = Split(), FoldIn(), Bits()


def _hashed(words: Any, shape: Shape) -> Sequence[Any]:
    """Two words for each key and each number from 0 on, the numbers arranged in `shape`."""
    keys, size = aval_of(words).shape[:-1], math.prod(shape)
    whole, rank = (*keys, size), len(keys)
    if 0 in whole:
        return [broadcast_in_dim(_word(0), (*keys, *shape), ())] * 2
    key = [_along(w, whole, range(rank)) for w in _columns(words)]
    hashed = threefry2x32(key, [_along(c, whole, (rank,)) for c in _counters(size)])
    return [reshape(h, (*keys, *shape)) for h in hashed]


def _along(x: Any, shape: Shape, dims: Sequence[int]) -> Any:
    """A scalar as it is, an array repeated into `shape`."""
    return broadcast_in_dim(x, shape, dims) if aval_of(x).ndim else x


def _counters(size: int) -> tuple[Any, Any]:
    """The high and the low word of 0, 1, 2…"""
    if size <= 2**32:
        return _word(0), iota(_UINT32, size)
    numbers = iota_p.bind(dtype=_UINT64, shape=(size,), dimension=0)
    high = shift_right_logical(numbers, literal(32, _UINT64))
    return convert(high, _UINT32), convert(numbers, _UINT32)


def _columns(words: Any) -> list[Any]:
    """The words of keys, each as an array of the keys' shape."""
    return [index_in_dim(words, i, axis=-1, keepdims=False) for i in range(aval_of(words).shape[-1])]


def _stacked(*words: Any) -> Any:
    """Words side by side along a new last dimension."""
    return concatenate([expand_dims(w, (-1,)) for w in words], aval_of(words[0]).ndim)


def _word(value: int) -> Any:
    return literal(value, _UINT32)
