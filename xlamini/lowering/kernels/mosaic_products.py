"""Products of matrices in Mosaic: `tpu.matmul` on two or, with a batch, three dimensions."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from xlamini.lowering.context import Value
from xlamini.lowering.kernels.arith import element_of, is_float
from xlamini.lowering.kernels.context import Rule
from xlamini.lowering.kernels.mosaic_reductions import reduced
from xlamini.lowering.kernels.mosaic_shapes import merged, reshape, shape_of_value, typed


class Side(NamedTuple):
    """One operand as a matrix, or a batch of them, and which of its dimensions is summed over."""

    value: Value
    contracts: int
    batch: int

    @property
    def free(self) -> int:
        """The dimension that the result has."""
        return 2 * self.batch + 1 - self.contracts


def _side(ctx: Any, x: Value, contract: Sequence[int], batch: Sequence[int]) -> Side:
    """The operand with its dimensions merged to at most one of each kind; another order of them is a transpose."""
    rank, b = len(shape_of_value(x)), len(batch)
    free = [d for d in range(rank) if d not in contract and d not in batch]
    orders = [[*batch, *free, *contract], [*batch, *contract, *free]]
    which = next((i for i, order in enumerate(orders) if order == list(range(rank))), None)
    if which is None:
        which, shape = 0, shape_of_value(x)
        x = ctx.one("tpu.transpose", [x], typed(ctx, [shape[d] for d in orders[0]], x), permutation=orders[0])
    shape, middle = list(shape_of_value(x)), b + len(contract if which else free)
    shape = merged(merged(shape, middle, rank), b, middle)
    return Side(reshape(ctx, x, merged(shape, 0, b) if b else shape), bool(b) + 1 - which, bool(b))


def _dot_general(
    ctx: Any, operands: Sequence[Value], types: Sequence[ir.Type], _: Any, attributes: Mapping[str, Any]
) -> Value:
    contracts, batches = ctx.eqn.params["dimension_numbers"]
    x, y = _of_one_type(ctx, operands)
    left, right = (_side(ctx, *each) for each in zip((x, y), contracts, batches, strict=True))
    is_vector = shape_of_value(right.value)[right.free] == 1
    product = _by_sum if is_vector and not left.batch and is_float(x) else _matmul
    out = reshape(ctx, product(ctx, left, right, attributes["precision_config"]), shape_of_value(types[0]))
    return ctx.converted(out, types[0])


def _of_one_type(ctx: Any, operands: Sequence[Value]) -> list[Value]:
    x, y = operands
    if element_of(x.type) == element_of(y.type):
        return [x, y]
    return [ctx.word(x), ctx.word(y)]


def _by_sum(ctx: Any, left: Side, right: Side, precision: str) -> Value:
    """A matrix with a vector: a sum of products, as the unit for matrices takes no vectors."""
    x, y = ctx.word(left.value), ctx.word(right.value)
    if not left.contracts:
        x = ctx.one("tpu.transpose", [x], typed(ctx, shape_of_value(x)[::-1], x), permutation=[1, 0])
    row = reshape(ctx, y, (1, shape_of_value(x)[1]))
    every = row if row.type == x.type else ctx.one("vector.broadcast", [row], x.type)
    return reduced(ctx, "stablehlo.add", ctx.one("arith.mulf", [x, every]), [1])


def _matmul(ctx: Any, left: Side, right: Side, precision: str) -> Value:
    """The product in float32 or int32, in which the unit adds up."""
    x, y = left.value, right.value
    rows, columns = shape_of_value(x)[left.free], shape_of_value(y)[right.free]
    shape = [*shape_of_value(x)[: left.batch], rows, columns]
    kind = ctx.mlir.vector(shape, ctx.float32 if is_float(x) else ctx.int32)
    exact = "HIGHEST" in precision and element_of(x.type) == ctx.float32
    more = {"precision": "#tpu.contract_precision<fp32>"} if exact else {}
    return ctx.one(
        "tpu.matmul", [x, y, ctx.splat(0, kind)], kind,
        dimension_numbers=_numbers(left, right), transpose_lhs_hint=False, **more,
    )  # fmt: skip


def _numbers(left: Side, right: Side) -> str:
    batch = "0" if left.batch else ""
    order = [*([0, 0] if left.batch else []), 0, left.free, 1, right.free]
    lists = [[left.contracts], [right.contracts], [left.free], [right.free], order]
    return f"#tpu.dot_dimension_numbers<{', '.join(map(str, lists))}, [{batch}], [{batch}]>"


PRODUCTS: dict[str, Rule] = {"stablehlo.dot_general": _dot_general}
