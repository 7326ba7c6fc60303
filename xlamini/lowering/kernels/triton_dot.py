"""Matrix products in Triton's dialect, on the GPU's tensor cores."""
from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib.mlir import ir

from xlamini.core.errors.kernel_errors import KernelError
from xlamini.lowering.context import Value
from xlamini.lowering.kernels.arith import element_of, is_float
from xlamini.lowering.kernels.context import KernelContext, Rule, filled
from xlamini.lowering.kernels.equations import named
from xlamini.lowering.kernels.triton_math import MATH
from xlamini.lowering.kernels.triton_shapes import like, reshaped, shape_of, transposed

_LEAST = 16
_PRECISIONS = {"DEFAULT": 0, "HIGH": 1, "HIGHEST": 2}  # tf32, tf32x3, ieee


class _DotNumbers(NamedTuple):
    """The dimensions of a product: of the batch, and those summed over, of each operand."""

    lhs_batch: list[int]
    rhs_batch: list[int]
    lhs_contract: list[int]
    rhs_contract: list[int]


def _dot_general(
    ctx: KernelContext, operands: Sequence[Value], types: Sequence[ir.Type], _: Any, attributes: Mapping
) -> Value:
    numbers = _numbers(attributes["dot_dimension_numbers"])
    x, y = _alike(ctx, operands)
    a = _matrix(ctx, x, numbers.lhs_batch, numbers.lhs_contract, False)
    b = _matrix(ctx, y, numbers.rhs_batch, numbers.rhs_contract, True)
    out = product(ctx, a, b, _accumulator(ctx, a, types[0]), _precision(attributes))
    return reshaped(ctx, MATH["stablehlo.convert"](ctx, [out], [like(ctx, types[0], shape_of(out))], (), {}),
                    shape_of(types[0]))  # fmt: skip


def product(ctx: KernelContext, a: Value, b: Value, element: ir.Type, precision: int) -> Value:
    """The product of two matrices, or of two stacks of them, with elements of this type."""
    *batch, rows, inner = shape_of(a)
    columns = shape_of(b)[-1]
    if min(rows, inner, columns) < _LEAST:
        raise KernelError(
            f"{named(ctx.eqn)} multiplies a matrix of {rows}x{inner} by one of {inner}x{columns}, but a GPU's kernel "
            f"multiplies matrices of at least {_LEAST}x{_LEAST}; take larger blocks, or write the product as "
            "(x[:, :, None] * y[None]).sum(1)"
        )
    kind = like(ctx, element, (*batch, rows, columns))
    how = {"inputPrecision": f"{precision} : i32", "maxNumImpreciseAcc": "0 : i32"}
    return ctx.one("tt.dot", [a, b, filled(ctx, 0, kind)], kind, **how)


def _matrix(ctx: KernelContext, x: Value, batch: list[int], contract: list[int], contract_first: bool) -> Value:
    """An operand as a matrix, with one dimension in front for those of the batch."""
    own = shape_of(x)
    free = [d for d in range(len(own)) if d not in batch and d not in contract]
    inner = [contract, free] if contract_first else [free, contract]
    groups = [batch, *inner] if batch else inner
    ordered = transposed(ctx, x, [d for group in groups for d in group])
    return reshaped(ctx, ordered, [math.prod(own[d] for d in group) for group in groups])


def _alike(ctx: KernelContext, operands: Sequence[Value]) -> list[Value]:
    """Operands of one dtype, the wider one."""
    x, y = operands
    if element_of(x.type) == element_of(y.type):
        return [x, y]
    kinds = [element_of(v.type) for v in (x, y)]
    if not all(map(is_float, kinds)):
        raise KernelError(f"{named(ctx.eqn)} multiplies {kinds[0]} by {kinds[1]}; convert them to one dtype first")
    wide = max(kinds, key=lambda t: ir.FloatType(t).width)
    return [MATH["stablehlo.convert"](ctx, [v], [like(ctx, wide, shape_of(v))], (), {}) for v in (x, y)]


def _accumulator(ctx: KernelContext, a: Value, out: ir.Type) -> ir.Type:
    """The type in which products are summed."""
    element = element_of(a.type)
    if not is_float(element):
        if ir.IntegerType(element).width != 8 or ctx.is_unsigned():
            raise KernelError(
                f"{named(ctx.eqn)} multiplies matrices of other integers than int8; convert to int8 or floats first"
            )
        return ctx.mlir.element_type(np.dtype(np.int32))
    wide = np.float64 if ir.FloatType(element).width == 64 else np.float32
    return ctx.mlir.element_type(np.dtype(wide))


def _precision(attributes: Mapping[str, Any]) -> int:
    """The number of Triton's input precision."""
    if "algorithm" in attributes:
        return _of_algorithm(attributes["algorithm"])
    found = re.findall(r"HIGHEST|HIGH|DEFAULT", str(attributes.get("precision_config", "")))
    return max((_PRECISIONS[name] for name in found), default=0)


def _of_algorithm(text: str) -> int:
    steps = int(re.search(r"num_primitive_operations = (\d+)", text)[1])  # type: ignore[index]
    if "lhs_precision_type = bf16" in text:
        return {3: 3, 6: 4}.get(steps, 0)
    if "lhs_precision_type = tf32" in text:
        return 1 if steps == 3 else 0
    return 2


def _numbers(text: str) -> _DotNumbers:
    return _DotNumbers(*(_list(text, name) for name in (
        "lhs_batching", "rhs_batching", "lhs_contracting", "rhs_contracting"
    )))  # fmt: skip


def _list(text: str, name: str) -> list[int]:
    found = re.search(rf"{name}_dimensions = \[([\d, ]*)\]", text)
    return [int(n) for n in found[1].split(",")] if found and found[1] else []


PRODUCTS: dict[str, Rule] = {"stablehlo.dot_general": _dot_general}
