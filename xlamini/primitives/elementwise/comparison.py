"""Elementwise comparisons: the result is bool, and nothing can be differentiated through it."""
from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

import numpy as np

from xlamini.core import Avals, ShapedArray, Values, aval_of
from xlamini.primitives.base.dtype_kinds import ANY, BOOL, COMPLEX, EXTENDED, FLOAT, REAL, UNSIGNED, kind_of
from xlamini.primitives.base.elementwise import Elementwise, elementwise
from xlamini.primitives.elementwise.bitwise import bitwise_and, bitwise_or
from xlamini.primitives.shape.slice import index_in_dim

_BOOL = np.dtype(bool)


class Comparison(Elementwise):
    """`stablehlo.compare` in the direction `hlo`."""

    lacks: Mapping[str, str] = {"jvp": "its result is bool"}
    of_floats = "FLOAT"

    def result(self, aval: ShapedArray, **params: Any) -> ShapedArray:
        return ShapedArray(aval.shape, _BOOL)

    def lower(self, ctx: Any, *operands: Any) -> Any:
        kind = kind_of(ctx.avals_in[0].dtype)
        how = self.of_floats if kind in FLOAT | COMPLEX else "UNSIGNED" if kind in UNSIGNED | BOOL else "SIGNED"
        return ctx.op(
            "stablehlo.compare",
            *self.broadcast_operands(ctx, operands),
            comparison_direction=f"#stablehlo<comparison_direction {self.hlo}>",
            compare_type=f"#stablehlo<comparison_type {how}>",
        )


class TotalOrder(Comparison):
    """A comparison of floats in the order of their bits: -0.0 before 0.0, NaNs last, or first if negative."""

    of_floats = "TOTALORDER"


class Equality(Comparison):
    """Equality, for random keys too, whose words are compared."""

    def physical(self, operands: Values, avals: Avals, **params: Any) -> Any:
        count = aval_of(operands[0]).shape[-1]
        words = [[index_in_dim(x, i, axis=-1, keepdims=False) for x in operands] for i in range(count)]
        return functools.reduce(bitwise_and if self.hlo == "EQ" else bitwise_or, (self.bind(*pair) for pair in words))


@elementwise(family=Equality, hlo="EQ", accepts=ANY | EXTENDED)
def eq(x: Any, y: Any) -> Any:
    """Test elementwise whether `x == y`.

    >>> lax.eq(1.0, 1.0)
    Array(True, dtype=bool)
    """


@elementwise(family=Equality, hlo="NE", accepts=ANY | EXTENDED)
def ne(x: Any, y: Any) -> Any:
    """Test elementwise whether `x != y`.

    >>> lax.ne(1.0, 2.0)
    Array(True, dtype=bool)
    """


@elementwise(family=Comparison, hlo="LT", accepts=REAL | BOOL)
def lt(x: Any, y: Any) -> Any:
    """Test elementwise whether `x < y`.

    >>> lax.lt(1.0, 2.0)
    Array(True, dtype=bool)
    """


@elementwise(family=Comparison, hlo="LE", accepts=REAL | BOOL)
def le(x: Any, y: Any) -> Any:
    """Test elementwise whether `x <= y`.

    >>> lax.le(1.0, 2.0)
    Array(True, dtype=bool)
    """


@elementwise(family=Comparison, hlo="GT", accepts=REAL | BOOL)
def gt(x: Any, y: Any) -> Any:
    """Test elementwise whether `x > y`.

    >>> lax.gt(1.0, 2.0)
    Array(False, dtype=bool)
    """


@elementwise(family=Comparison, hlo="GE", accepts=REAL | BOOL)
def ge(x: Any, y: Any) -> Any:
    """Test elementwise whether `x >= y`.

    >>> lax.ge(1.0, 2.0)
    Array(False, dtype=bool)
    """


@elementwise(family=TotalOrder, hlo="EQ", accepts=REAL | BOOL)
def eq_to(x: Any, y: Any) -> Any:
    """Test elementwise whether x equals y in the total order."""


@elementwise(family=TotalOrder, hlo="LT", accepts=REAL | BOOL)
def lt_to(x: Any, y: Any) -> Any:
    """Test elementwise whether x precedes y in the total order."""


@elementwise(family=TotalOrder, hlo="LE", accepts=REAL | BOOL)
def le_to(x: Any, y: Any) -> Any:
    """Test elementwise whether x precedes or equals y in the total order."""
