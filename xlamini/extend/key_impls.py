"""Key implementations: random generators that users define, for `random.key(seed, impl=...)` and all that draws."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini.core import Shape, aval_of, enable_x64, literal
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.extend.rules import as_value
from xlamini.primitives import convert
from xlamini.primitives.base.promotion import broadcast_to
from xlamini.primitives.base.tangent_ops import zeros
from xlamini.primitives.elementwise.bitwise import bitwise_or, shift_left
from xlamini.primitives.random.generators import ALGORITHMS, GENERATORS, Algorithm
from xlamini.primitives.shape.shape import broadcast_in_dim, reshape
from xlamini.runtime import KeyType
from xlamini.runtime.arrays.keys import Generator
from xlamini.transforms.vmap import vmap

_UINT64 = np.dtype(np.uint64)


def define_key_impl(
    name: str,
    tag: str,
    words: int,
    *,
    seed: Callable[[Any], Any],
    split: Callable[[Any, Shape], Any],
    fold_in: Callable[[Any, Any], Any],
    bits: Callable[[Any, int, Shape], Any],
) -> KeyType:
    """Define a random generator by functions of a single key, an array uint32[words]; returns the dtype of its keys.

    `seed(number)` makes a key of an unsigned integer, of 64 bits with `enable_x64`, else 32. `split(key, shape)` makes
    new keys, uint32[*shape, words]. `fold_in(key, data)` makes a key of a key and a uint32. `bits(key, width, shape)`
    makes an array of this shape, of unsigned integers of 8, 16, 32 or 64 bits. `tag` is the name in the dtype, as in
    `key<tag>`. ValueError for the name of another generator, or for `words` less than 1.

    >>> from xlamini import extend, random
    >>> sheep = extend.define_key_impl(
    ...     "counting", "sheep", 1,
    ...     seed=lambda number: jnp.full(1, number, "uint32"),
    ...     split=lambda key, shape: key + jnp.arange(1, 1 + np.prod(shape), dtype="uint32").reshape(*shape, 1),
    ...     fold_in=lambda key, data: key + data,
    ...     bits=lambda key, width, shape: jnp.full(shape, key[0], f"uint{width}"),
    ... )
    >>> random.bits(random.key(7, impl=sheep), (2,))
    Array([7, 7], dtype=uint32)
    """
    generator = Generator(name, tag, words)
    if words < 1:
        raise ValueError(f"define_key_impl: words must be 1 or more, got {words}")
    if GENERATORS.get(name, generator) != generator:
        raise ValueError(f"define_key_impl: there is a generator {name!r} already; choose another name")
    ALGORITHMS[generator] = _of_arrays(generator, seed, split, fold_in, bits)
    GENERATORS[name] = generator
    return KeyType(generator)


def _of_arrays(generator: Generator, seed: Any, split: Any, fold_in: Any, bits: Any) -> Algorithm:
    """The functions on arrays of keys, from those on one key."""
    words = generator.words

    def seeds(high: Any, low: Any) -> Any:
        return _each(lambda h, w: _checked("seed", seed(_joined(h, w)), (words,)), aval_of(low).ndim, high, low)

    def splits(keys: Any, shape: Shape) -> Any:
        return _each(lambda key: _checked("split", split(key, shape), (*shape, words)), aval_of(keys).ndim - 1, keys)

    def folds(keys: Any, data: Any) -> Any:
        shape = broadcast_shapes(aval_of(keys).shape[:-1], aval_of(data).shape)
        every = _stretched(keys, (*shape, words)), _stretched(data, shape)
        return _each(lambda key, x: _checked("fold_in", fold_in(key, x), (words,)), len(shape), *every)

    def draws(keys: Any, width: int, shape: Shape) -> Any:
        return _each(lambda key: _checked("bits", bits(key, width, shape), shape, width), aval_of(keys).ndim - 1, keys)

    return Algorithm(seeds, splits, folds, draws)


def _each(fun: Callable[..., Any], ndim: int, *operands: Any) -> Any:
    """The function on each key of an array of `ndim` dimensions."""
    values = [as_value(x) for x in operands]
    shape = values[0].shape[:ndim]
    if ndim == 0:
        return fun(*values)
    if 0 in shape:  # of no key, the results of any key tell the shape
        out = fun(*(zeros(x.aval.update(shape=x.shape[ndim:])) for x in values))
        return broadcast_in_dim(out, (*shape, *out.shape), range(ndim, ndim + out.ndim))
    flat = [reshape(x, (math.prod(shape), *x.shape[ndim:])) for x in values]
    out = vmap(fun)(*flat)
    return reshape(out, (*shape, *out.shape[1:]))


def _stretched(x: Any, shape: Shape) -> Any:
    """A value broadcast to a shape, as NumPy does."""
    aligned = reshape(x, (*(1,) * (len(shape) - aval_of(x).ndim), *aval_of(x).shape))
    return broadcast_to(aligned, shape)


def _joined(high: Any, low: Any) -> Any:
    """The seed, of 64 bits where there are such."""
    if not enable_x64.value:
        return low
    return bitwise_or(shift_left(convert(high, _UINT64), literal(32, _UINT64)), convert(low, _UINT64))


def _checked(function: str, found: Any, shape: Shape, width: int = 32) -> Any:
    aval = aval_of(found)
    if (aval.shape, aval.dtype) != (tuple(shape), np.dtype(f"uint{width}")):
        wanted = f"uint{width}{list(shape)}"
        raise TypeError(f"{function} of a key implementation must return {wanted}, got {aval.str_long()}")
    return found
