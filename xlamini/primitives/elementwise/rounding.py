"""Rounding to whole numbers, and questions about how floats are spaced. Derivatives are 0."""
from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import numpy as np

from xlamini.core import ShapedArray
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.primitives.base.dtype_kinds import FLOAT
from xlamini.primitives.base.elementwise import Elementwise, elementwise
from xlamini.runtime import Array


@elementwise(hlo="stablehlo.floor", accepts=FLOAT)
def floor(x: Any) -> Any:
    """The largest whole number that is not above x, elementwise.

    >>> lax.floor(1.5)
    Array(1., dtype=float32, weak_type=True)
    """


floor.checks = NO_NEW_NAN
floor.derivatives(lambda x, out: 0)


@elementwise(hlo="stablehlo.ceil", accepts=FLOAT)
def ceil(x: Any) -> Any:
    """The smallest whole number that is not below x, elementwise.

    >>> lax.ceil(1.5)
    Array(2., dtype=float32, weak_type=True)
    """


ceil.checks = NO_NEW_NAN
ceil.derivatives(lambda x, out: 0)


class RoundingMethod(enum.IntEnum):
    """The rule by which `round` rounds halves: away from zero, or to even.

    >>> x = jnp.array([0.5, 1.5, 2.5])
    >>> lax.round(x, RoundingMethod.AWAY_FROM_ZERO), lax.round(x, RoundingMethod.TO_NEAREST_EVEN)
    (Array([1., 2., 3.], dtype=float32), Array([0., 2., 2.], dtype=float32))
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


class Round(Elementwise):
    """Rounding, with one StableHLO op for each method."""

    checks = NO_NEW_NAN

    def lower(self, ctx: Any, x: Any, *, rounding_method: RoundingMethod) -> Any:
        even = rounding_method is RoundingMethod.TO_NEAREST_EVEN
        return ctx.op("stablehlo.round_nearest_even" if even else "stablehlo.round_nearest_afz", x)


@elementwise(family=Round, accepts=FLOAT)
def round_p(x: Any, *, rounding_method: RoundingMethod) -> Any:
    """The nearest whole number."""


round_p.name = "round"
round_p.derivatives(lambda x, out, rounding_method: 0)


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest whole number, elementwise; `rounding_method` decides between two that are equally near.

    >>> round(2.5), round(2.5, RoundingMethod.TO_NEAREST_EVEN)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    return round_p.bind(x, rounding_method=RoundingMethod(rounding_method))


class IsFinite(Elementwise):
    """A question."""

    lacks: Mapping[str, str] = {"jvp": "its result is bool"}

    def result(self, aval: ShapedArray, **params: Any) -> ShapedArray:
        return ShapedArray(aval.shape, np.dtype(bool))


@elementwise(family=IsFinite, hlo="stablehlo.is_finite", accepts=FLOAT)
def is_finite(x: Any) -> Any:
    """Test elementwise whether x is neither infinite nor NaN.

    >>> lax.is_finite(jnp.array([1.0, jnp.inf]))
    Array([ True, False], dtype=bool)
    """


@elementwise(hlo="chlo.next_after", accepts=FLOAT)
def nextafter(x1: Any, x2: Any) -> Any:
    """The floating-point number after x1 in the direction of x2, elementwise.

    >>> lax.gt(lax.nextafter(1.0, 2.0), 1.0)
    Array(True, dtype=bool)
    """


nextafter.lacks = {"jvp": "about the grid of numbers, not their size"}
