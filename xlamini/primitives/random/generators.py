"""The random number generators: the operations of each on the words of its keys.

threefry2x32   element i of what a key makes is the hash of the key and the number i: the same bits on every platform
               (with the flag threefry_partitionable off, the arrangement of older programs, which no device has alone)
rbg            keys are split by the hash; bits come from XLA's generator, fast, but another one on each platform
unsafe_rbg     keys too are split by XLA's generator, of which no independence has been shown

Under vmap the last two draw all from the first key, as JAX does.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Shape, Values, aval_of, literal
from xlamini.core.flags.jax_flags import threefry_partitionable
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.primitives.base.promotion import broadcast_to
from xlamini.primitives.elementwise.bitwise import bitwise_or, bitwise_xor, shift_left, shift_right_logical
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.placement.optimization_barrier import cpu_barrier_p
from xlamini.primitives.random.rng_bit_generator import RNG_DEFAULT, rng_bit_generator_p
from xlamini.primitives.random.threefry import threefry2x32
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.iota import iota, iota_p
from xlamini.primitives.shape.shape import broadcast_in_dim, expand_dims, moveaxis, reshape
from xlamini.primitives.shape.slice import index_in_dim, slice_in_dim
from xlamini.runtime import KeyType
from xlamini.runtime.arrays.keys import Generator

THREEFRY = Generator("threefry2x32", "fry", 2)
RBG = Generator("rbg", "rbg", 4)
UNSAFE_RBG = Generator("unsafe_rbg", "urbg", 4)
FRY = KeyType(THREEFRY)
"""The dtype of the keys of the default generator."""

_UINT32, _UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)
_FEW = 4
"""As many parts of each of many keys are made apart; more are one hash."""
_STRIDE = 10
"""unsafe_rbg keeps every tenth of the keys that it makes."""


class Algorithm(NamedTuple):
    """A random generator's functions: `words` have the shape of the keys and a last dimension, new keys likewise.

    seed(high, low) makes keys of seeds, split(words, shape) an array of keys of each key, fold_in(words, data) a key
    of each key and number, bits(words, width, shape) an array of unsigned integers of each key.
    """

    seed: Callable[..., Any]
    split: Callable[..., Any]
    fold_in: Callable[..., Any]
    bits: Callable[..., Any]


# threefry2x32


def _seed(high: Any, low: Any) -> Any:
    return _stacked(high, low)


def _split(words: Any, shape: Shape) -> Any:
    if threefry_partitionable.value:
        if aval_of(words).ndim > 1 and len(shape) == 1 and 0 < shape[0] <= _FEW:
            return _split_in_few(words, *shape)
        made = _stacked(*_hashed(words, shape))
    else:
        made = reshape(_in_halves(words, 2 * math.prod(shape)), (*aval_of(words).shape[:-1], *shape, 2))
    return cpu_barrier_p.bind(made)[0]


def _split_in_few(words: Any, count: int) -> Any:
    """Each part of many keys by itself, so that who takes one of them moves no others."""
    parts = [_fold_in(words, _word(i)) for i in range(count)]
    rank = aval_of(words).ndim - 1
    return concatenate([expand_dims(part, (rank,)) for part in parts], rank)


def _fold_in(words: Any, data: Any) -> Any:
    first, second = _columns(words)
    shape = broadcast_shapes(first.shape, aval_of(data).shape)
    first, second, data = (broadcast_to(x, shape) if aval_of(x).ndim else x for x in (first, second, data))
    hashed = threefry2x32((first, second), (_word(0), data))
    return cpu_barrier_p.bind(_stacked(*hashed))[0]


def _bits(words: Any, width: int, shape: Shape) -> Any:
    if not threefry_partitionable.value:
        return _bits_in_halves(words, width, shape)
    first, second = _hashed(words, shape)
    if width == 64:
        high, low = convert(first, _UINT64), convert(second, _UINT64)
        return bitwise_or(shift_left(high, literal(32, _UINT64)), low)
    return convert(bitwise_xor(first, second), np.dtype(f"uint{width}"))


# threefry2x32 with the flag threefry_partitionable off: the numbers 0 to n - 1 are hashed in pairs from both halves


def _in_halves(words: Any, count: int) -> Any:
    """`count` words for each key, along a new last dimension: the hashes of numbers i and i + count / 2, rounded up."""
    keys, half = aval_of(words).shape[:-1], (count + 1) // 2
    whole, rank = (*keys, half), len(keys)
    if 0 in whole:
        return broadcast_in_dim(_word(0), (*keys, count), ())
    numbers = iota(_UINT32, count)
    second = slice_in_dim(numbers, half, count)
    rest = 2 * half - count
    second = concatenate([second, broadcast_in_dim(_word(0), (rest,), ())], 0) if rest else second
    key = [_along(w, whole, range(rank)) for w in _columns(words)]
    counters = [_along(c, whole, (rank,)) for c in (slice_in_dim(numbers, 0, half), second)]
    return slice_in_dim(concatenate(threefry2x32(key, counters), rank), 0, count, 1, rank)


def _bits_in_halves(words: Any, width: int, shape: Shape) -> Any:
    keys, size = aval_of(words).shape[:-1], math.prod(shape)
    made, rank = _in_halves(words, -(-width * size // 32)), len(keys)
    if width == 64:
        high, low = (convert(slice_in_dim(made, i * size, (i + 1) * size, 1, rank), _UINT64) for i in range(2))
        made = bitwise_or(shift_left(high, literal(32, _UINT64)), low)
    elif width < 32:
        made = slice_in_dim(_parts(made, width), 0, size, 1, rank)
    return reshape(made, (*keys, *shape))


def _parts(words: Any, width: int) -> Any:
    """The parts of `width` bits of words along the last dimension, those of lower bits first."""
    shape = (*aval_of(words).shape, 32 // width)
    shifts = broadcast_in_dim(_word(width) * iota(_UINT32, 32 // width), shape, (len(shape) - 1,))
    parts = shift_right_logical(broadcast_in_dim(words, shape, range(len(shape) - 1)), shifts)
    return convert(reshape(parts, (*shape[:-2], shape[-2] * shape[-1])), np.dtype(f"uint{width}"))


# rbg: two threefry keys side by side, and XLA's generator


def _rbg_seed(high: Any, low: Any) -> Any:
    return _stacked(high, low, high, low)


def _rbg_split(words: Any, shape: Shape) -> Any:
    rank = aval_of(words).ndim - 1
    return _joined(moveaxis(_split(_split_words(words), shape), rank, rank + len(shape)))


def _rbg_fold_in(words: Any, data: Any) -> Any:
    return _joined(_fold_in(_split_words(words), expand_dims(data, (-1,)) if aval_of(data).ndim else data))


def _rbg_bits(words: Any, width: int, shape: Shape) -> Any:
    keys = aval_of(words).shape[:-1]
    if 0 in keys:
        return broadcast_in_dim(literal(0, np.dtype(f"uint{width}")), (*keys, *shape), ())
    return _generated(_first(words), np.dtype(f"uint{width}"), (*keys, *shape))


# unsafe_rbg


def _unsafe_split(words: Any, shape: Shape) -> Any:
    keys, rank = aval_of(words).shape[:-1], aval_of(words).ndim - 1
    if 0 in (*keys, *shape):
        return broadcast_in_dim(_word(0), (*keys, *shape, 4), ())
    made = _generated(_first(words), _UINT32, (*keys, _STRIDE * math.prod(shape), 4))
    return reshape(slice_in_dim(made, None, None, _STRIDE, rank), (*keys, *shape, 4))


def _unsafe_fold_in(words: Any, data: Any) -> Any:
    batch, zero = aval_of(data).shape, _word(0)
    if 0 in (*batch, *aval_of(words).shape):
        return broadcast_in_dim(zero, (*broadcast_shapes(batch, aval_of(words).shape[:-1]), 4), ())
    number = _first(expand_dims(data, (-1,)))
    seed = concatenate([reshape(zero, (1,)), number] * 2, 0)
    made = _generated(seed, _UINT32, (*batch, _STRIDE, 4))
    mask = index_in_dim(made, _STRIDE - 1, axis=len(batch), keepdims=False)
    shape = broadcast_shapes(aval_of(words).shape, aval_of(mask).shape)
    return bitwise_xor(broadcast_to(words, shape), broadcast_to(mask, shape))


ALGORITHMS = {
    THREEFRY: Algorithm(_seed, _split, _fold_in, _bits),
    RBG: Algorithm(_rbg_seed, _rbg_split, _rbg_fold_in, _rbg_bits),
    UNSAFE_RBG: Algorithm(_rbg_seed, _unsafe_split, _unsafe_fold_in, _rbg_bits),
}
GENERATORS = {generator.name: generator for generator in ALGORITHMS}
NATIVE = frozenset(ALGORITHMS)
"""The library's own: their key of a seed is the seed's two words, repeated; their functions capture no arrays."""


def _hashed(words: Any, shape: Shape) -> Values:
    """Two hashed words for each key and each counter from 0 on, the counters arranged in `shape`."""
    keys = aval_of(words).shape[:-1]
    whole, rank = (*keys, *shape), len(keys)
    if 0 in whole:
        return [broadcast_in_dim(_word(0), whole, ())] * 2
    key = [_along(w, whole, range(rank)) for w in _columns(words)]
    return threefry2x32(key, [_along(c, whole, range(rank, len(whole))) for c in _counters(shape)])


def _along(x: Any, shape: Shape, dims: Sequence[int]) -> Any:
    """An array broadcast to `shape`; a scalar is returned unchanged."""
    return broadcast_in_dim(x, shape, dims) if aval_of(x).ndim else x


def _counters(shape: Shape) -> tuple[Any, Any]:
    """The high and the low word of 0, 1, 2… in a shape."""
    size = math.prod(shape)
    if size <= 2**32:
        return _word(0), reshape(iota(_UINT32, size), shape)
    numbers = reshape(iota_p.bind(dtype=_UINT64, shape=(size,), dimension=0), shape)
    high = shift_right_logical(numbers, literal(32, _UINT64))
    return convert(high, _UINT32), convert(numbers, _UINT32)


def _generated(state: Any, dtype: np.dtype, shape: Shape) -> Any:
    """Random bits by XLA's generator."""
    return rng_bit_generator_p.bind(state, shape=shape, dtype=dtype, algorithm=RNG_DEFAULT)[1]


def _first(words: Any) -> Any:
    """The words of the first key."""
    for _ in range(aval_of(words).ndim - 1):
        words = index_in_dim(words, 0, keepdims=False)
    return words


def _split_words(words: Any) -> Any:
    """Split each key of four words into two keys of two words."""
    return reshape(words, (*aval_of(words).shape[:-1], 2, 2))


def _joined(words: Any) -> Any:
    """The reverse of `_split_words`."""
    return reshape(words, (*aval_of(words).shape[:-2], 4))


def _columns(words: Any) -> list[Any]:
    """The words of keys, each as an array of the keys' shape."""
    return [index_in_dim(words, i, axis=-1, keepdims=False) for i in range(aval_of(words).shape[-1])]


def _stacked(*words: Any) -> Any:
    """Words side by side along a new last dimension."""
    return concatenate([expand_dims(w, (-1,)) for w in words], aval_of(words[0]).ndim)


def _word(value: int) -> Any:
    return literal(value, _UINT32)
