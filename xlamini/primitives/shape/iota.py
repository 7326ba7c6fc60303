"""iota: counting along a dimension."""
from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from xlamini.core import PURE, REMATERIALIZABLE, Primitive, Shape, ShapedArray, ShapeError, check_user_dtype
from xlamini.core.program.avals import as_sizes
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.primitives.base.dtype_kinds import NUMERIC, kind_of
from xlamini.primitives.base.out_sharding import in_sharding
from xlamini.runtime import Array


def iota(dtype: Any, size: int) -> Array:
    """The numbers 0, 1, …, size - 1.

    >>> iota(np.int32, 3)
    Array([0, 1, 2], dtype=int32)
    """
    return broadcasted_iota(dtype, (size,), 0)


def broadcasted_iota(dtype: Any, shape: Sequence[int], dimension: int, *, out_sharding: Any = None) -> Array:
    """An array of this shape in which each element is its index along `dimension`.

    Raises TypeError for a dtype that cannot count, ShapeError for a shape or dimension that does not exist.

    >>> broadcasted_iota(np.int32, (2, 3), 1)
    Array([[0, 1, 2],
           [0, 1, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return in_sharding(out_sharding, broadcasted_iota, dtype, shape, dimension)
    known = check_user_dtype(dtype, "iota")
    return iota_p.bind(dtype=known, shape=as_sizes(shape), dimension=operator.index(dimension))


class Iota(Primitive):
    traits = PURE | REMATERIALIZABLE
    name = "iota"
    checks = NO_NEW_NAN

    def shape_rule(self, *, dtype: np.dtype, shape: Shape, dimension: int) -> ShapedArray:
        kind = kind_of(dtype)
        if kind is None or kind not in NUMERIC:
            raise TypeError(f"iota: dtype {dtype} cannot count; ask for an integer or floating-point dtype")
        if any(n < 0 for n in shape) or not 0 <= dimension < len(shape):
            raise ShapeError(
                f"iota: dimension {dimension} of shape {shape} does not exist; sizes must be 0 or more, and "
                f"dimension from 0 to {len(shape) - 1}"
            )
        return ShapedArray(shape, dtype)

    def jvp(self, primals: Any, tangents: Any, **params: Any) -> Any:
        raise AssertionError("iota has no operands, so no tangent can reach it")

    batch: Callable[..., Any]
    transpose = batch = jvp  # type: ignore[assignment]

    def lower(self, ctx: Any, *, dtype: np.dtype, shape: Shape, dimension: int) -> Any:
        return ctx.op("stablehlo.iota", iota_dimension=f"{dimension} : i64")


iota_p: Final = Iota()
