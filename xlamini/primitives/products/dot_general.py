"""dot_general: products of two arrays summed over pairs of dimensions; all of matmul, dot, einsum is made of it.

The dimensions of an operand are of three kinds. *Batch* dimensions are shared and remain, *contracting* ones are shared
and summed, *free* ones belong to one operand. The result has the batch dimensions first, then the free ones of the left
operand, then those of the right one.
"""
from __future__ import annotations

import functools
import math
from contextlib import nullcontext
from typing import Any, Final

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Cost,
    Dims,
    Factors,
    Params,
    Primitive,
    Shape,
    ShapedArray,
    ShapeError,
    Values,
    Zero,
    aval_of,
    check_user_dtype,
    is_linear,
    is_zero,
    result_type,
    tangent_aval,
)
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.program.avals import NOWHERE, as_sizes
from xlamini.core.program.checks import KEEPS_NAN
from xlamini.core.program.form import Form, Platform
from xlamini.core.program.memory import Memory
from xlamini.core.sharding.facet import Sharding
from xlamini.core.sharding.partial_sums import Sums, left_open, split_along, sums_left_open
from xlamini.primitives.base.out_sharding import summed_in_sharding
from xlamini.primitives.base.precision import CanonicalPrecision, Precision, canonical_precision, precision_config, swap
from xlamini.primitives.base.tangent_ops import add_tangents
from xlamini.primitives.elementwise.convert_element_type import cast
from xlamini.primitives.forms.cpu.products.choice import form_on_cpu
from xlamini.primitives.products.dot_algorithm import Algorithm, recipe, rounded_form, supports
from xlamini.primitives.products.dot_dtypes import mixed_form
from xlamini.primitives.shape.shape import transpose
from xlamini.runtime import Array

DotDimensionNumbers = tuple[tuple[Shape, Shape], tuple[Shape, Shape]]
"""What `dot_general` takes as `dimension_numbers`: the contracting dimensions of both operands, then their batch
dimensions.

>>> numbers: DotDimensionNumbers = (((2,), (1,)), ((0,), (0,)))
>>> lax.dot_general(jnp.ones((5, 2, 3)), jnp.ones((5, 3, 4)), numbers).shape
(5, 2, 4)
"""


@api_boundary
def dot_general(
    lhs: Any,
    rhs: Any,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
    *,
    out_sharding: Any = None,
) -> Array:
    """Sum of products over the contracting dimensions, for each index of the batch and free dimensions.

    `dimension_numbers` is `((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))`. The result, of shape
    batch + free of lhs + free of rhs, has dtype `preferred_element_type`, or else the operands' promoted dtype.
    Raises ShapeError where paired dimensions differ in size or do not exist.

    >>> a, b = xlamini.numpy.ones((2, 3)), xlamini.numpy.ones((3, 4))
    >>> dot_general(a, b, (((1,), (0,)), ((), ()))).shape
    (2, 4)
    """
    if out_sharding is not None:
        numbers, dtype = dimension_numbers, preferred_element_type
        return summed_in_sharding(out_sharding, dot_general, lhs, rhs, numbers, precision, dtype)
    if preferred_element_type is not None:
        preferred_element_type = check_user_dtype(preferred_element_type, "dot_general")
    return dot_general_p.bind(
        lhs,
        rhs,
        dimension_numbers=canonical_numbers("dot_general", dimension_numbers),
        precision=canonical_precision(precision),
        preferred_element_type=preferred_element_type,
    )


def dot(
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: Any = None,
    precision: Any = None,
    preferred_element_type: Any = None,
    out_sharding: Any = None,
) -> Array:
    """Product of vectors and matrices; with `dimension_numbers`, `dot_general`.

    Raises ShapeError unless both have rank 1 or 2 and the last dimension of `lhs` fits the first of `rhs`.

    >>> dot(xlamini.numpy.ones((2, 3)), xlamini.numpy.ones(3))
    Array([3., 3.], dtype=float32)
    """
    if dimension_numbers is None:
        a, b = aval_of(lhs), aval_of(rhs)
        if a.ndim not in (1, 2) or b.ndim not in (1, 2):
            raise ShapeError(
                f"dot takes vectors and matrices, got {a.str_long()} and {b.str_long()}; "
                "give dimension_numbers for other ranks"
            )
        dimension_numbers = (((a.ndim - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding)


def batch_matmul(lhs: Any, rhs: Any, precision: Any = None) -> Array:
    """Matrix product of the last two dimensions; the leading ones are the batch and must be equal.

    >>> batch_matmul(xlamini.numpy.ones((5, 2, 3)), xlamini.numpy.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    a, b = aval_of(lhs), aval_of(rhs)
    if a.ndim < 2 or a.ndim != b.ndim:
        raise ShapeError(
            f"batch_matmul takes two arrays of one rank, at least 2; got {a.str_long()} and {b.str_long()}"
        )
    batch = tuple(range(a.ndim - 2))
    return dot_general(lhs, rhs, (((a.ndim - 1,), (b.ndim - 2,)), (batch, batch)), precision)


def _factors(avals: Avals, outs: Avals, params: Params) -> Factors:
    (lhs, rhs), numbers = avals, params["dimension_numbers"]
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers
    partner = dict(zip((*rhs_contract, *rhs_batch), (*lhs_contract, *lhs_batch), strict=True))
    right = [partner.get(d, f"right {d}") for d in range(rhs.ndim)]
    lhs_free, rhs_free = free_dimensions(lhs.ndim, rhs.ndim, numbers)
    result = [*lhs_batch, *lhs_free, *(right[d] for d in rhs_free)]
    return Factors([range(lhs.ndim), right], [result], () if params.get("unreduced") else lhs_contract)


def _sums(avals: Avals, outs: Avals, params: Params) -> list[Sums]:
    return [Sums(params.get("unreduced", NOWHERE))]


class DotGeneral(Primitive):
    name = "dot_general"
    sharding: Sharding = Sharding(factors=_factors, sums=_sums, mixes_reduced=True)
    memory: Memory = Memory(product=True)
    checks = KEEPS_NAN

    def bind(self, lhs: Any, rhs: Any, **params: Any) -> Any:
        """Apply it; `unreduced` are the axes along which its sum is not taken."""
        if aval_of(lhs).explicit_sharding is not None or "unreduced" in params:
            params = left_open(params, map(split_along, (lhs, rhs), params["dimension_numbers"][0]))
        return super().bind(lhs, rhs, **params)

    def shape_rule(
        self,
        lhs: ShapedArray,
        rhs: ShapedArray,
        *,
        dimension_numbers: DotDimensionNumbers,
        precision: CanonicalPrecision,
        preferred_element_type: Any,
        unreduced: frozenset[Any] = NOWHERE,
    ) -> ShapedArray:
        check_numbers("dot_general", lhs, rhs, dimension_numbers)
        lhs_free, rhs_free = free_dimensions(lhs.ndim, rhs.ndim, dimension_numbers)
        _, (lhs_batch, _) = dimension_numbers
        shape = (*map(lhs.shape.__getitem__, (*lhs_batch, *lhs_free)), *map(rhs.shape.__getitem__, rhs_free))
        if isinstance(precision, Algorithm):
            recipe(precision, (lhs.dtype, rhs.dtype))  # raises if it is not for them
        dtype = preferred_element_type
        if dtype is None:
            dtype = lhs.dtype if lhs.dtype == rhs.dtype else result_type(lhs.dtype, rhs.dtype)
        return ShapedArray(shape, dtype)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        (lhs, rhs), (lhs_dot, rhs_dot) = primals, tangents
        out = self.bind(lhs, rhs, **params)
        nothing = Zero(tangent_aval(aval_of(out)))
        if nothing.aval.dtype != aval_of(out).dtype:
            return out, nothing
        left = nothing if is_zero(lhs_dot) else self.bind(lhs_dot, rhs, **params)
        right = nothing if is_zero(rhs_dot) else self.bind(lhs, rhs_dot, **params)
        return out, add_tangents(left, right)

    def transpose(self, ct: Any, lhs: Any, rhs: Any, **params: Any) -> Values:
        if is_linear(lhs):
            return [_transposed(ct, lhs.aval, rhs, **params), None]
        (contract, batch), precision = params["dimension_numbers"], params["precision"]
        params = {
            **params,
            "dimension_numbers": (contract[::-1], batch[::-1]),
            "precision": swap(precision),
        }
        return [None, _transposed(ct, rhs.aval, lhs, target_first=False, **params)]

    def batch(
        self,
        axis: Axis,
        operands: Values,
        dims: Dims,
        *,
        dimension_numbers: DotDimensionNumbers,
        **params: Any,
    ) -> Any:
        lhs_rank, rhs_rank = (aval_of(x).ndim - (d is not None) for x, d in zip(operands, dims, strict=True))
        frees = free_dimensions(lhs_rank, rhs_rank, dimension_numbers)
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = dimension_numbers
        left, right = dims
        contract = _shifted(lhs_contract, left), _shifted(rhs_contract, right)
        batch = _shifted(lhs_batch, left), _shifted(rhs_batch, right)
        if left is not None and right is not None:
            batch, out_dim = ((left, *batch[0]), (right, *batch[1])), 0
        elif left is not None:
            out_dim = len(lhs_batch) + sum(d < left for d in frees[0])
        else:
            assert right is not None
            out_dim = len(lhs_batch) + len(frees[0]) + sum(d < right for d in frees[1])
        return self.bind(*operands, dimension_numbers=(contract, batch), **params), out_dim

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        out, numbers, precision = outs[0], params["dimension_numbers"], params["precision"]
        if isinstance(precision, Algorithm):
            steps = recipe(precision, [a.dtype for a in avals])
            product = rounded_form(platform, avals, out.dtype, steps, numbers)
        else:
            is_whole = platform.name == "cpu" and not params.get("unreduced")
            product = form_on_cpu(platform, avals, out, numbers) if is_whole else None
            if product is None and not avals[0].dtype == avals[1].dtype == out.dtype:
                product = mixed_form(platform, avals, out.dtype, numbers)
        return product and Form(functools.partial(product, functools.partial(self.bind, precision=precision)))

    def lower(self, ctx: Any, *operands: Any, dimension_numbers: DotDimensionNumbers, precision: Any, **_: Any) -> Any:
        attributes = {
            "dot_dimension_numbers": _numbers_attribute(dimension_numbers),
            "precision_config": precision_config(precision),
        }
        if isinstance(precision, Algorithm):
            steps = recipe(precision, [a.dtype for a in ctx.avals_in])
            if supports(ctx.platform, steps):
                attributes["algorithm"] = str(steps)
            elif ctx.platform != "cpu":  # whose products are exact; others round wide operands unless told not to
                attributes["precision_config"] = precision_config((Precision.HIGHEST, Precision.HIGHEST))
        return ctx.op("stablehlo.dot_general", *operands, **attributes)

    def shown_params(self, params: Params) -> Params:
        pairs = tuple(tuple(map(list, pair)) for pair in params["dimension_numbers"])
        shown = {**super().shown_params(params), "dimension_numbers": pairs, "unreduced": None}  # the type shows it
        return {k: v for k, v in shown.items() if v is not None}

    def cost(self, lhs: ShapedArray, rhs: ShapedArray, **params: Any) -> Cost:
        out = self.shape_rule(lhs, rhs, **params)
        (contract, _), _ = params["dimension_numbers"]
        summed = math.prod(lhs.shape[d] for d in contract)
        return Cost(2 * out.size * summed, lhs.nbytes + rhs.nbytes + out.nbytes)


dot_general_p: Final = DotGeneral()


# --- helpers


def free_dimensions(lhs_rank: int, rhs_rank: int, numbers: DotDimensionNumbers) -> tuple[Shape, Shape]:
    """The dimensions of each operand that are neither contracted nor batch."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers
    return (
        tuple([d for d in range(lhs_rank) if d not in lhs_contract and d not in lhs_batch]),
        tuple([d for d in range(rhs_rank) if d not in rhs_contract and d not in rhs_batch]),
    )


def canonical_numbers(name: str, numbers: Any) -> DotDimensionNumbers:
    """Dimension numbers as tuples of ints; TypeError, naming the function, for anything else."""
    try:
        (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers
        return (as_sizes(lhs_contract), as_sizes(rhs_contract)), (as_sizes(lhs_batch), as_sizes(rhs_batch))
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}: dimension_numbers is {numbers!r}; "
            "write ((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)), each a sequence of ints"
        ) from None


def check_numbers(name: str, lhs: ShapedArray, rhs: ShapedArray, numbers: DotDimensionNumbers) -> None:
    """ShapeError, naming the function, where the operands do not have these dimensions, or of other sizes."""
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers
    _check_dimensions(name, "lhs", lhs, lhs_contract, lhs_batch)
    _check_dimensions(name, "rhs", rhs, rhs_contract, rhs_batch)
    check_pairs(name, "contracting", lhs, rhs, lhs_contract, rhs_contract)
    check_pairs(name, "batch", lhs, rhs, lhs_batch, rhs_batch)


def _check_dimensions(name: str, side: str, aval: ShapedArray, contract: Shape, batch: Shape) -> None:
    named = (*contract, *batch)
    if named and not 0 <= min(named) <= max(named) < aval.ndim:
        raise ShapeError(
            f"{name}: contracting {contract} and batch {batch} do not fit {side} of type {aval.str_long()}; "
            + (f"its dimensions are 0 to {aval.ndim - 1}" if aval.ndim else "it has no dimensions")
        )
    if len(set(named)) != len(named):
        raise ShapeError(
            f"{name}: a dimension of {side} is named twice in contracting {contract} and batch {batch}; "
            "name each once"
        )


def check_pairs(name: str, kind: str, lhs: ShapedArray, rhs: ShapedArray, left: Shape, right: Shape) -> None:
    """ShapeError, naming the function, where paired dimensions differ in size."""
    left_sizes, right_sizes = [tuple(map(a.shape.__getitem__, ds)) for a, ds in ((lhs, left), (rhs, right))]
    if left_sizes == right_sizes:
        return
    raise ShapeError(
        f"{name}: {kind} dimensions differ: {lhs.str_long()} has {left_sizes} at {left}, "
        f"{rhs.str_long()} has {right_sizes} at {right}; {_fix(kind, lhs, rhs, left, right)}"
    )


def _fix(kind: str, lhs: ShapedArray, rhs: ShapedArray, left: Shape, right: Shape) -> str:
    if kind == "contracting" and lhs.ndim == rhs.ndim == 2 and len(left) == len(right) == 1:
        size = lhs.shape[left[0]]
        if rhs.shape[1 - right[0]] == size:
            return "transpose the right operand (.T)"
        if lhs.shape[1 - left[0]] == rhs.shape[right[0]]:
            return "transpose the left operand (.T)"
    return "paired dimensions must have one size"


def _shifted(dimensions: Shape, inserted: int | None) -> Shape:
    """Dimensions of an operand after one was inserted."""
    return dimensions if inserted is None else tuple(d + (d >= inserted) for d in dimensions)


def _transposed(
    ct: Any,
    target: ShapedArray,
    other: Any,
    *,
    dimension_numbers: DotDimensionNumbers,
    precision: CanonicalPrecision,
    preferred_element_type: Any,
    unreduced: frozenset[Any] = NOWHERE,
    target_first: bool = True,
) -> Any:
    """The cotangent of `target`, whose dimensions come first in `dimension_numbers`.

    The order leaves the least to transpose, but in batches on a GPU, where transpositions of attention's heads merge.
    """
    (contract, other_contract), (batch, other_batch) = dimension_numbers
    free, other_free = free_dimensions(target.ndim, aval_of(other).ndim, dimension_numbers)
    start = len(batch) + (len(free) if target_first else 0)
    ct_other = tuple(range(start, start + len(other_free)))
    summed = tuple(contract[other_contract.index(d)] for d in sorted(other_contract))  # in the order of the other
    numbers = ((ct_other, other_free), (tuple(range(len(batch))), other_batch))
    operands, order = (ct, other), (*batch, *free, *summed)
    if not batch and (*summed, *free) == tuple(range(target.ndim)) != order:
        operands, order, precision = (other, ct), tuple(range(target.ndim)), swap(precision)
        numbers = (numbers[0][::-1], numbers[1][::-1])
    sharding = target.explicit_sharding
    with nullcontext() if sharding is None else sums_left_open(sharding.reduced or None):
        how = {"precision": precision, "preferred_element_type": preferred_element_type}
        product = dot_general_p.bind(*operands, dimension_numbers=numbers, **how)
    return cast(transpose(product, np.argsort(order).tolist()), target.dtype)


def _numbers_attribute(numbers: DotDimensionNumbers) -> str:
    (lhs_contract, rhs_contract), (lhs_batch, rhs_batch) = numbers
    return (
        f"#stablehlo.dot<lhs_batching_dimensions = {list(lhs_batch)}, "
        f"rhs_batching_dimensions = {list(rhs_batch)}, "
        f"lhs_contracting_dimensions = {list(lhs_contract)}, "
        f"rhs_contracting_dimensions = {list(rhs_contract)}>"
    )
