"""lu_pivots_to_permutation: row exchanges done one after another, as the one permutation that they make.

A few exchanges are written out, element by element, so that XLA makes one loop over the batch of them; many are a loop
whose every iteration is one pass over the permutation.
"""
from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xlamini.core import Avals, Params, ShapedArray, ShapeError, Values, Zero, aval_of, literal, tangent_aval
from xlamini.core.program.form import Form, Platform
from xlamini.core.sharding.facet import stacked_dimensions
from xlamini.core.sizes.expression import as_size, is_less
from xlamini.lowering.control_flow import while_loop
from xlamini.lowering.ffi_calls import foreign_call
from xlamini.lowering.gpu import is_gpu, is_gpu_platform
from xlamini.primitives.base.dtype_kinds import INTEGER
from xlamini.primitives.base.tangent_ops import full
from xlamini.primitives.elementwise.arithmetic import add
from xlamini.primitives.elementwise.comparison import eq, lt
from xlamini.primitives.elementwise.select import select_n
from xlamini.primitives.indexing.dynamic_slice import dynamic_slice_p
from xlamini.primitives.linalg.stacks import MatrixOperation, as_matrices, shown
from xlamini.primitives.reductions.reductions import check_kind
from xlamini.primitives.reductions.sort import sort
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.iota import broadcasted_iota
from xlamini.primitives.shape.shape import broadcast_in_dim, expand_dims, squeeze, sum_over
from xlamini.primitives.shape.slice import index_in_dim

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


FEW = 8
_INDEX = np.dtype(np.int32)


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Any:
    """The permutation, int32 of shape [..., permutation_size], made by exchanging rows i and `pivots[i]` in sequence.

    `pivots` are int32 of shape [..., k], counted from 0, k at most `permutation_size`; else ShapeError.

    >>> lu_pivots_to_permutation(jnp.array([2, 2]), 3)
    Array([2, 0, 1], dtype=int32)
    """
    (pivots,) = as_matrices("lu_pivots_to_permutation", pivots)
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=as_size(permutation_size))


def inverse_permutation(permutation: Any) -> Any:
    """The inverse of a permutation along the last dimension."""
    aval = aval_of(permutation)
    last = aval.ndim - 1
    return sort((permutation, broadcasted_iota(_INDEX, aval.shape, last)), last)[1]


class LuPivotsToPermutation(MatrixOperation):
    name = "lu_pivots_to_permutation"
    kernels: tuple[str] = ("cu_lu_pivots_to_permutation",)
    sharding: Sharding = stacked_dimensions(1)

    def shape_rule(self, pivots: ShapedArray, *, permutation_size: int) -> ShapedArray:
        check_kind(self.name, pivots, INTEGER)
        if pivots.ndim < 1 or pivots.shape[-1] > permutation_size:
            raise ShapeError(
                f"lu_pivots_to_permutation: pivots are {shown(pivots)}, for a permutation of {permutation_size}; "
                "they need rank 1 at least, and no more of them than are permuted"
            )
        return ShapedArray((*pivots.shape[:-1], permutation_size), _INDEX)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        out = self.bind(*primals, **params)
        return out, Zero(tangent_aval(aval_of(out)))

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        (pivots,), size = avals, params["permutation_size"]
        if is_gpu_platform(platform.name) and self.shape_rule(pivots, **params).size:
            return None
        return Form(functools.partial(_written_out, size=size)) if pivots.size == 0 or is_less(size, FEW + 1) else None

    def lower(self, ctx: Any, pivots: Any, *, permutation_size: int) -> Any:
        if not is_gpu(ctx):
            return _loop(ctx, pivots)
        batch = ctx.avals_in[0].ndim - 1
        return foreign_call(ctx, "cu_lu_pivots_to_permutation", [pivots], [ctx.aval_out], batch_dims=batch)[0]

    def callers(self, operands: Avals, results: Avals) -> Iterator[tuple[Avals, Params]]:
        yield operands, {"permutation_size": results[0].shape[-1]}


lu_pivots_to_permutation_p: Final = LuPivotsToPermutation()


# --- helpers


def _written_out(pivots: Any, size: int) -> Any:
    aval = aval_of(pivots)
    last = aval.ndim - 1
    one = ShapedArray((*aval.shape[:-1], 1), _INDEX)
    columns = [full(one, i) for i in range(size)]
    for i in range(aval.shape[-1] if aval.size else 0):
        _exchange(columns, i, index_in_dim(pivots, i, last))
    return concatenate(columns, last) if columns else full(ShapedArray((*aval.shape[:-1], 0), _INDEX), 0)


def _exchange(columns: list[Any], i: int, pivot: Any) -> None:
    mine = columns[i]
    for j in range(len(columns)):
        if j != i:
            chosen = eq(pivot, full(aval_of(pivot), j))
            columns[i] = select_n(chosen, columns[i], columns[j])
            columns[j] = select_n(chosen, columns[j], mine)


def _loop(ctx: Any, pivots: Any) -> Any:
    """`for i in range(k): exchange elements i and pivots[i]`."""
    exchanged, permuted = ctx.avals_in[0], ctx.aval_out
    counter = ShapedArray((), _INDEX)
    start = ctx.op("stablehlo.iota", iota_dimension=f"{permuted.ndim - 1} : i64")
    zero = ctx.constant(0, counter)

    def holds(i: Any, _: Any) -> list[Any]:
        return [ctx.inline(lambda n: lt(n, literal(exchanged.shape[-1], _INDEX)), i, avals=[counter])]

    def turn(i: Any, order: Any) -> list[Any]:
        return ctx.inline(_exchanged, i, order, pivots, avals=[counter, permuted, exchanged])

    return while_loop(ctx, [zero, start], holds, turn)[1]


def _exchanged(i: Any, order: Any, pivots: Any) -> list[Any]:
    aval = aval_of(order)
    last = aval.ndim - 1
    mine, pivot = _element(order, i), _element(pivots, i)
    here = broadcasted_iota(_INDEX, aval.shape, last)
    at_pivot = eq(here, broadcast_in_dim(pivot, aval.shape, range(last + 1)))
    if last:
        other = expand_dims(sum_over(select_n(at_pivot, full(aval, 0), order), (last,)), (last,))
    else:
        other = _element(order, squeeze(pivot, (0,)))
    other, mine = (broadcast_in_dim(x, aval.shape, range(last + 1)) for x in (other, mine))
    at_own = eq(here, broadcast_in_dim(i, aval.shape, ()))
    return [add(i, literal(1, _INDEX)), select_n(at_own, select_n(at_pivot, order, mine), other)]


def _element(x: Any, i: Any) -> Any:
    """Element i along the last dimension, which stays with size 1."""
    shape = aval_of(x).shape
    zeros = [literal(0, _INDEX)] * (len(shape) - 1)
    return dynamic_slice_p.bind(x, *zeros, i, slice_sizes=(*shape[:-1], 1))
