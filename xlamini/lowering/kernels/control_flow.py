"""Loops and branches in the dialect `scf`, which Triton and Mosaic share."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir

from xlamini.lowering.context import Value
from xlamini.lowering.kernels.arith import compare
from xlamini.lowering.kernels.context import KernelContext, Regions, Rule, constant_like


def _while(
    ctx: KernelContext, operands: Sequence[Value], types: Sequence[ir.Type], regions: Regions, attributes: Any
) -> list[Value]:
    holds, body = regions
    ends = [ctx.region_ending("scf.condition", holds), ctx.region_ending("scf.yield", body)]
    return ctx.emit("scf.while", operands, types, ends)


def _case(
    ctx: KernelContext, operands: Sequence[Value], types: Sequence[ir.Type], regions: Regions, attributes: Any
) -> list[Value]:
    return _branches(ctx, operands[0], 0, [ctx.region_ending("scf.yield", fill) for fill in regions], types)


def _branches(
    ctx: KernelContext, index: Value, first: int, regions: Regions, types: Sequence[ir.Type]
) -> list[Value]:
    """The results of the branch at `index`, counted from `first`; an index out of range selects the last branch."""
    is_first = compare(ctx, "EQ", index, constant_like(ctx, first, index))
    rest = regions[1] if len(regions) == 2 else _region_of(ctx, index, first + 1, regions[1:], types)
    return ctx.emit("scf.if", [is_first], types, [regions[0], rest])


def _region_of(ctx: KernelContext, index: Value, first: int, regions: Regions, types: Sequence[ir.Type]) -> Any:
    body = ctx.region([], lambda: _branches(ctx, index, first, regions, types))
    return ctx.region_ending("scf.yield", body)


CONTROL_FLOW: dict[str, Rule] = {"stablehlo.while": _while, "stablehlo.case": _case}
