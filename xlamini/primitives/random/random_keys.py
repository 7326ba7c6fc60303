"""The primitives of random keys: making keys, splitting them, drawing bits from them.

Transformations and printing treat keys as values of a dtype such as `key<fry>`; a rule `physical` defines a primitive
on the words that keys are made of, which is the business of their generator (generators.py).
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Dims,
    Params,
    Primitive,
    Shape,
    ShapedArray,
    Values,
    Zero,
    aval_of,
    literal,
    tangent_aval,
)
from xlamini.core.program.checks import Checks
from xlamini.core.program.key_uses import CONSUMES, FORWARDS
from xlamini.core.sharding.facet import broadcast_dimensions, leading_dimensions
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.primitives.base.batch_ops import with_batch_first
from xlamini.primitives.elementwise.bitwise import shift_right_logical
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.random.generators import ALGORITHMS, NATIVE, Algorithm
from xlamini.primitives.shape.shape import broadcast_in_dim, expand_dims, moveaxis
from xlamini.runtime import KeyType
from xlamini.runtime.arrays.keys import Generator

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


_UINT32 = np.dtype(np.uint32)


class KeyPrimitive(Primitive):
    """The base of key primitives: no derivative; a batch of keys is an array with one more leading dimension."""

    sharding: Sharding = leading_dimensions()

    def physical(self, operands: Values, avals: Avals, /, **params: Any) -> Any:
        raise NotImplementedError(f"{self.name} does not say what it computes from words")

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        out = self.bind(*primals, **params)
        return out, Zero(tangent_aval(aval_of(out)))

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        return self.bind(*with_batch_first(operands, dims, axis.size), **params), 0

    def lower(self, ctx: Any, *operands: Any, **params: Any) -> Any:
        raise TypeError(f"{self.name} is lowered in its physical form only; see interpreters/physical.py")


class Generated(KeyPrimitive):
    """What a generator computes, by the functions of its implementation."""

    def expands_on(self, avals: Avals, params: Params) -> bool:
        """Whether users have defined the generator: what its functions capture becomes inputs of the program."""
        return _generator(avals, params) not in NATIVE

    def expand(self, *operands: Any, **params: Any) -> Any:
        avals = [aval_of(x) for x in operands]
        words = [unwrap_p.bind(x) if isinstance(x.dtype, KeyType) else x for x in operands]
        made = self.physical(words, avals, **params)
        returns_keys = isinstance(self.shape_rule(*avals, **params).dtype, KeyType)
        return wrap_p.bind(made, impl=_generator(avals, params)) if returns_keys else made


class Seed(Generated):
    """Keys from integers."""

    name = "random_seed"

    def shape_rule(self, seeds: ShapedArray, *, impl: Generator) -> ShapedArray:
        return ShapedArray(seeds.shape, KeyType(impl))

    def physical(self, operands: Values, avals: Avals, *, impl: Generator) -> Any:
        (seeds,) = operands
        dtype = aval_of(seeds).dtype
        low = convert(seeds, _UINT32)
        if dtype.itemsize < 8:
            return ALGORITHMS[impl].seed(broadcast_in_dim(literal(0, _UINT32), low.shape, ()), low)
        high = shift_right_logical(seeds, literal(32, dtype))
        return ALGORITHMS[impl].seed(convert(high, _UINT32), low)


class Wrap(KeyPrimitive):
    """Keys from their words, which lie along the last dimension."""

    name = "random_wrap"
    checks: Checks = Checks(key_uses=FORWARDS)  # raw keys are known by their words

    def shape_rule(self, words: ShapedArray, *, impl: Generator) -> ShapedArray:
        return ShapedArray(words.shape[:-1], KeyType(impl))

    def physical(self, operands: Values, avals: Avals, *, impl: Generator) -> Any:
        return operands[0]


class Unwrap(KeyPrimitive):
    """The words of keys."""

    name = "random_unwrap"

    def shape_rule(self, keys: ShapedArray) -> ShapedArray:
        return ShapedArray((*keys.shape, *keys.dtype.physical_shape), keys.dtype.physical_dtype)

    def physical(self, operands: Values, avals: Avals) -> Any:
        return operands[0]


class Clone(KeyPrimitive):
    """A copy of keys that checks against key reuse count as new."""

    name = "random_clone"

    def shape_rule(self, keys: ShapedArray) -> ShapedArray:
        return keys

    def physical(self, operands: Values, avals: Avals) -> Any:
        return operands[0]


class SplitKey(Generated):
    """Split each key into an array of new keys."""

    name = "random_split"
    checks: Checks = Checks(key_uses=CONSUMES)

    def shape_rule(self, keys: ShapedArray, *, shape: Shape) -> ShapedArray:
        return keys.update(shape=(*keys.shape, *shape))

    def physical(self, operands: Values, avals: Avals, *, shape: Shape) -> Any:
        return _algorithm(avals[0]).split(operands[0], shape)


class FoldIn(Generated):
    """Fold a uint32 into each key: a new key."""

    name = "random_fold_in"
    sharding: Sharding = broadcast_dimensions()

    def shape_rule(self, keys: ShapedArray, data: ShapedArray) -> ShapedArray:
        return keys.update(shape=broadcast_shapes(keys.shape, data.shape))

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        """Batch the operands; an unbatched one gets a dimension of size 1 at most, which some generators exploit."""
        rank = max(aval_of(x).ndim - (d is not None) for x, d in zip(operands, dims, strict=True))
        return self.bind(*(_aligned(x, d, rank) for x, d in zip(operands, dims, strict=True))), 0

    def physical(self, operands: Values, avals: Avals) -> Any:
        return _algorithm(avals[0]).fold_in(*operands)


class RandomBits(Generated):
    """Random unsigned integers of 8, 16, 32 or 64 bits from each key: an array of them."""

    name = "random_bits"
    checks: Checks = Checks(makes_nan=False, key_uses=CONSUMES)

    def shape_rule(self, keys: ShapedArray, *, bit_width: int, shape: Shape) -> ShapedArray:
        return ShapedArray((*keys.shape, *shape), np.dtype(f"uint{bit_width}"))

    def physical(self, operands: Values, avals: Avals, *, bit_width: int, shape: Shape) -> Any:
        return _algorithm(avals[0]).bits(operands[0], bit_width, shape)


def _generator(avals: Avals, params: Params) -> Generator:
    return params["impl"] if "impl" in params else avals[0].dtype.generator


seed_p: Final = Seed()
wrap_p: Final = Wrap()
unwrap_p: Final = Unwrap()
clone_p: Final = Clone()
split_p: Final = SplitKey()
fold_in_p: Final = FoldIn()
bits_p: Final = RandomBits()


def _algorithm(keys: ShapedArray) -> Algorithm:
    return ALGORITHMS[keys.dtype.generator]


def _aligned(x: Any, dim: int | None, rank: int) -> Any:
    """The batch first, then dimensions of size 1 in front of others where there are fewer than `rank`."""
    missing = rank - aval_of(x).ndim + (dim is not None)
    if dim is None:
        return expand_dims(x, range(missing))
    return expand_dims(moveaxis(x, dim, 0), range(1, 1 + missing))
