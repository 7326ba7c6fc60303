"""Symbolic sizes in programs: as numbers to compute with, and what a program assumes of them."""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from xlamini.core import PURE, REMATERIALIZABLE, Effects, Params, Primitive, ShapedArray, enable_x64
from xlamini.core.errors.frames import user_line
from xlamini.core.program.effects import Effect
from xlamini.core.sizes.expression import Size, SymbolicSize
from xlamini.core.tracing.state import state
from xlamini.primitives.elementwise.convert_element_type import convert


def size_value(size: SymbolicSize, dtype: Any = None, weak_type: bool = True) -> Any:
    """A symbolic size as a number of rank 0: by default an integer, weakly typed as a Python number is.

    NumberNeeded outside of a function that is traced, because the size has no value there.
    """
    found = dim_as_value_p.bind(dim=size)
    return found if dtype is None else convert(found, dtype, weak_type)


class DimAsValue(Primitive):
    traits = PURE | REMATERIALIZABLE
    name = "dim_as_value"
    lacks: Mapping[str, str] = dict.fromkeys(("jvp", "transpose", "batch"), "it has no operands")

    def shape_rule(self, *, dim: SymbolicSize) -> ShapedArray:
        return ShapedArray((), np.dtype(np.int64 if enable_x64.value else np.int32), weak_type=True)

    def lower(self, ctx: Any, *, dim: SymbolicSize) -> Any:
        return ctx.op("stablehlo.convert", ctx.size(dim))


dim_as_value_p: Final = DimAsValue()

_effect = Effect("SizeAssertion", observing=True)


def assume_unequal(x: SymbolicSize, y: Size) -> None:
    """Let the program that is traced be for sizes that differ, because the user's line went on as if they did."""
    if state.builder is not None:
        assume_unequal_p.bind(x=x, y=y, place=user_line())


class AssumeUnequal(Primitive):
    """The exported program checks it when it is called."""

    name = "assume_unequal"
    multiple_results = True
    lacks: Mapping[str, str] = dict.fromkeys(("jvp", "transpose", "batch"), "it has no operands")

    def shape_rule(self, *, x: SymbolicSize, y: Size, place: str) -> list[ShapedArray]:
        return []

    def lower(self, ctx: Any, *, x: SymbolicSize, y: Size, place: str) -> list[Any]:
        ctx.assert_unequal(x, y, f"the program is for {x} != {y}, as {place} compared them, but both are {{0}}")
        return []

    def effects(self, avals: Any, params: Params) -> Effects:
        return frozenset([_effect])


assume_unequal_p: Final = AssumeUnequal()
