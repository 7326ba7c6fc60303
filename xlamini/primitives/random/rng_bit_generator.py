"""rng_bit_generator: random bits as the platform makes them fastest, from a state of 128 bits.

Which bits come out is the platform's choice, so they may change with the device and the version of XLA.
"""
from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Dims,
    Factors,
    Params,
    Primitive,
    Shape,
    ShapedArray,
    ShapeError,
    Values,
    aval_of,
    check_user_dtype,
    dims,
    issubdtype,
    literal,
)
from xlamini.core.program.avals import as_sizes
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.core.sharding.facet import Sharding
from xlamini.primitives.base.batch_ops import with_batch_first
from xlamini.primitives.base.out_sharding import checked_sharding, split_as
from xlamini.primitives.indexing.dynamic_update_slice import dynamic_update_slice
from xlamini.primitives.shape.shape import expand_dims
from xlamini.primitives.shape.slice import index_in_dim

_STATES = {np.dtype(np.uint32): (4,), np.dtype(np.uint64): (2,)}
_PAIRS, _LONGS = ShapedArray((2, 2), np.dtype(np.uint32)), ShapedArray((2,), np.dtype(np.uint64))
_ZERO_INDEX = np.dtype(np.int32)


class RandomAlgorithm(enum.IntEnum):
    """The algorithm of `rng_bit_generator`.

    >>> state = jnp.zeros(4, "uint32")
    >>> _, bits = lax.rng_bit_generator(state, (2,), algorithm=RandomAlgorithm.RNG_THREE_FRY)
    >>> bits
    Array([1797259609, 2579123966], dtype=uint32)
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2

    def __str__(self) -> str:
        return self.name

    __repr__ = __str__


RNG_DEFAULT = RandomAlgorithm.RNG_DEFAULT
_HLO = {RNG_DEFAULT: "DEFAULT", RandomAlgorithm.RNG_THREE_FRY: "THREE_FRY", RandomAlgorithm.RNG_PHILOX: "PHILOX"}


def rng_bit_generator(
    key: Any,
    shape: Sequence[int],
    dtype: Any = np.uint32,
    algorithm: RandomAlgorithm = RNG_DEFAULT,
    *,
    out_sharding: Any = None,
) -> tuple[Any, Any]:
    """A new state, and random bits of `shape`, as unsigned integers of `dtype`, from the state `key`.

    The state is uint32[4] or uint64[2]. `random.bits` is for programs that need the same bits everywhere. Raises
    TypeError for a state of floats and for a dtype of bits that is no unsigned integer; ShapeError where a program with
    another state is compiled: it can be traced, and an interpreter of programs may know such a state.

    >>> state, bits = rng_bit_generator(xlamini.numpy.arange(4, dtype="uint32"), (3,))
    >>> bits.shape
    (3,)
    """
    there = None if out_sharding is None else checked_sharding("rng_bit_generator", out_sharding)
    state, bits = rng_bit_generator_p.bind(
        key,
        shape=as_sizes(shape),
        dtype=check_user_dtype(dtype, "rng_bit_generator"),
        algorithm=RandomAlgorithm(algorithm),
    )
    return state, bits if there is None else split_as(bits, there)


def _factors(avals: Avals, outs: Avals, params: Params) -> Factors:
    state, bits = outs
    return Factors([dims(state)], [dims(state), [None] * bits.ndim])


class RngBitGenerator(Primitive):
    name = "rng_bit_generator"
    multiple_results = True
    lacks: Mapping[str, str] = {"jvp": "of integers only"}
    sharding: Sharding = Sharding(factors=_factors)
    checks = NO_NEW_NAN

    def shape_rule(
        self, key: ShapedArray, *, shape: Shape, dtype: np.dtype, algorithm: RandomAlgorithm
    ) -> list[ShapedArray]:
        if not issubdtype(key.dtype, np.integer):
            raise TypeError(f"rng_bit_generator: key must be uint32[4] or uint64[2], got {key.str_short()}")
        if not issubdtype(dtype, np.unsignedinteger):
            raise TypeError(f"rng_bit_generator: dtype must be an unsigned integer such as 'uint32', got {dtype}")
        return [key.update(weak_type=False), ShapedArray(shape, dtype)]

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        """Batch by drawing the bits for all from the first state: only their independence is required."""
        (keys,) = with_batch_first(operands, dims, axis.size)
        shape = (axis.size, *params.pop("shape"))
        state, bits = self.bind(index_in_dim(keys, 0, keepdims=False), shape=shape, **params)
        start = [literal(0, _ZERO_INDEX)] * aval_of(keys).ndim
        return [dynamic_update_slice(keys, expand_dims(state, (0,)), start), bits], [0, 0]

    def lower(self, ctx: Any, key: Any, *, shape: Shape, dtype: np.dtype, algorithm: RandomAlgorithm) -> Any:
        (state,) = ctx.avals_in
        if state.shape != _STATES.get(state.dtype):
            raise ShapeError(f"rng_bit_generator: key must be uint32[4] or uint64[2], got {state.str_short()}")
        narrow = state.dtype != _LONGS.dtype
        if narrow:
            key = ctx.op("stablehlo.bitcast_convert", ctx.reshape(key, _PAIRS), avals=[_LONGS])
        how = f"#stablehlo<rng_algorithm {_HLO[algorithm]}>"
        avals = [_LONGS, ctx.avals_out[1]]
        after, bits = ctx.op("stablehlo.rng_bit_generator", key, avals=avals, rng_algorithm=how)
        if narrow:
            after = ctx.reshape(ctx.op("stablehlo.bitcast_convert", after, avals=[_PAIRS]), state)
        return [after, bits]


rng_bit_generator_p: Final = RngBitGenerator()
