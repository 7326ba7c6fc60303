"""Reductions and running ones in Triton's dialect, along one axis after the other."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from jaxlib.mlir import ir

from xlamini.core.errors.kernel_errors import KernelError
from xlamini.lowering.context import Value
from xlamini.lowering.kernels.arith import is_float
from xlamini.lowering.kernels.context import KernelContext, Regions, Rule
from xlamini.lowering.kernels.equations import named
from xlamini.lowering.kernels.triton_shapes import like, reshaped, shape_of


def _reduce(
    ctx: KernelContext, operands: Sequence[Value], types: Sequence[ir.Type], regions: Regions, attributes: Mapping
) -> list[Value]:
    """The starts, the second half of the operands, are neutral elements, so they add nothing."""
    values = list(operands[: len(types)])
    body = ctx.region_ending("tt.reduce.return", regions[0])
    for axis in sorted(attributes["dimensions"], reverse=True):
        values = _along(ctx, values, axis, body)
    return values


def _along(ctx: KernelContext, values: Sequence[Value], axis: int, body: Any) -> list[Value]:
    own = shape_of(values[0])
    kinds = [like(ctx, x, (*own[:axis], *own[axis + 1 :])) for x in values]
    if own[axis] == 1:
        return [reshaped(ctx, x, shape_of(kind)) for x, kind in zip(values, kinds, strict=True)]
    return ctx.emit("tt.reduce", values, kinds, [body], axis=f"{axis} : i32")


def summed(ctx: KernelContext, x: Value, axis: int) -> Value:
    """The sum along an axis; of bools, whether any is true."""
    element = like(ctx, x, ())
    is_bool = not is_float(x) and ir.IntegerType(element).width == 1
    name = "arith.addf" if is_float(x) else "arith.ori" if is_bool else "arith.addi"
    fill = ctx.region([element] * 2, lambda a, b: [ctx.one(name, [a, b])], "stablehlo.return")
    return _along(ctx, [x], axis, ctx.region_ending("tt.reduce.return", fill))[0]


def _reduce_window(
    ctx: KernelContext, operands: Sequence[Value], types: Sequence[ir.Type], regions: Regions, attributes: Mapping
) -> list[Value]:
    """A window from the start, or the end, of an axis to each element: a running reduction."""
    values, window = list(operands[: len(types)]), attributes["window_dimensions"]
    axes = [d for d, n in enumerate(window) if n > 1]
    if not axes:
        return values
    own, (axis, *others) = shape_of(values[0]), axes
    if others or window[axis] != own[axis] or shape_of(types[0]) != own:
        raise KernelError(
            f"{named(ctx.eqn)} reduces windows, which a GPU's kernel cannot; reduce parts of the ref instead"
        )
    reverse = not attributes["padding"].startswith(_padding(len(own), axis, own[axis] - 1))
    body = ctx.region_ending("tt.scan.return", regions[0])
    kinds = [x.type for x in values]
    return ctx.emit("tt.scan", values, kinds, [body], axis=f"{axis} : i32", reverse=reverse)


def _padding(rank: int, axis: int, reach: int) -> str:
    """The text of padding in front of an axis."""
    return f"dense<{[[reach if d == axis else 0, 0] for d in range(rank)]}>"


REDUCTIONS: dict[str, Rule] = {"stablehlo.reduce": _reduce, "stablehlo.reduce_window": _reduce_window}
