"""approx_max_k, approx_min_k: the approximately largest or smallest elements along a dimension.

An answer is good enough that misses some of them now and then; the exact one always is, and is what this gives. How
many results there are before they are aggregated is XLA's rule: Chern et al., "TPU-KNN: K nearest neighbor search at
peak FLOP/s", 2022, arXiv 2206.14286.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Final, NoReturn

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Cost,
    Params,
    Primitive,
    ShapedArray,
    ShapeError,
    Values,
    Zero,
    aval_of,
    is_zero,
    tangent_aval,
)
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.core.program.form import Form, Platform
from xlamini.core.sharding.facet import same_dimensions
from xlamini.primitives.base.dtype_kinds import FLOAT, kind_of
from xlamini.primitives.reductions.sort import sort_p
from xlamini.primitives.reductions.top_k import top_k
from xlamini.primitives.shape.iota import iota_p
from xlamini.primitives.shape.reorder import permuted
from xlamini.primitives.shape.slice import slice_in_dim

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


_INDEX = np.dtype(np.int32)
_LANES, _LANES_OF_VECTORS = 128, 1024


def approx_max_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Any, Any]:
    """The `k` largest elements along `reduction_dimension` in decreasing order, and their indices.

    A share of `recall_target` of them at least is right; here all are. Without `aggregate_to_topk` there are more
    results than `k`, as many as XLA would aggregate; `reduction_input_size_override` is the size that they are reckoned
    for. Raises ValueError for a `k` that does not fit or an operand that is not floating point, ShapeError for a
    dimension that does not exist.

    >>> approx_max_k(xlamini.numpy.array([1.0, 4.0, 2.0]), 2)
    (Array([4., 2.], dtype=float32), Array([1, 2], dtype=int32))
    """
    return _approximate(
        "approx_max_k", operand, k, reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk
    )


def approx_min_k(
    operand: Any,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Any, Any]:
    """The `k` smallest elements along `reduction_dimension` in increasing order, and their indices; see approx_max_k.

    >>> approx_min_k(xlamini.numpy.array([1.0, 4.0, 2.0]), 2)
    (Array([1., 2.], dtype=float32), Array([0, 2], dtype=int32))
    """
    return _approximate(
        "approx_min_k", operand, k, reduction_dimension, recall_target, reduction_input_size_override, aggregate_to_topk
    )


class ApproxTopK(Primitive):
    name = "approx_top_k"
    multiple_results = True
    sharding: Sharding = same_dimensions(whole="reduction_dimension")
    checks = NO_NEW_NAN

    def shape_rule(self, x: ShapedArray, **params: Any) -> list[ShapedArray]:
        dim = params["reduction_dimension"]
        shape = (*x.shape[:dim], _count(x, **params), *x.shape[dim + 1 :])
        return [x.update(shape=shape), ShapedArray(shape, _INDEX)]

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        values, indices = self.bind(*primals, **params)
        (tangent,) = tangents
        nothing = Zero(tangent_aval(aval_of(values)))
        moved = nothing if is_zero(tangent) else permuted(tangent, indices, params["reduction_dimension"])
        return [values, indices], [moved, Zero(tangent_aval(aval_of(indices)))]

    def transpose(self, ct: Any, x: Any, **params: Any) -> NoReturn:
        raise AssertionError("approx_top_k is not linear; its derivative is a gather")

    def batch(self, axis: Axis, operands: Any, dims: Any, *, reduction_dimension: int, **params: Any) -> Any:
        (x,), (dim,) = operands, dims
        moved = reduction_dimension + (reduction_dimension >= dim)
        return self.bind(x, reduction_dimension=moved, **params), [dim, dim]

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form:
        exact = _largest if params["is_max_k"] else _smallest
        return Form(functools.partial(exact, count=_count(*avals, **params), axis=params["reduction_dimension"]))

    def cost(self, x: ShapedArray, **params: Any) -> Cost:
        return super().cost(x, **params)._replace(flops=x.size)


approx_top_k_p: Final = ApproxTopK()


# --- helpers


def _approximate(
    name: str, operand: Any, k: int, dimension: int, recall: float, override: int, aggregate: bool
) -> tuple[Any, Any]:
    x = aval_of(operand)
    if kind_of(x.dtype) is not FLOAT:
        raise ValueError(
            f"{name}: the operand must be floating point, got {x.str_short(False)}; convert it with .astype"
        )
    dim = dimension + x.ndim if dimension < 0 else int(dimension)
    if not 0 <= dim < x.ndim:
        raise ShapeError(f"{name}: reduction_dimension {dimension} does not fit {x.str_short(False)}")
    if not 1 <= k <= x.shape[dim]:
        raise ValueError(f"{name}: k must be 1 to {x.shape[dim]}, the size of dimension {dimension}, got {k}")
    if not 0 < recall <= 1:
        raise ValueError(f"{name}: recall_target must be above 0 and at most 1, got {recall}")
    if 0 <= override < x.shape[dim]:
        raise ValueError(
            f"{name}: reduction_input_size_override must be {x.shape[dim]} or more, the size of dimension {dimension}, "
            f"got {override}"
        )
    values, indices = approx_top_k_p.bind(
        operand,
        k=int(k),
        reduction_dimension=dim,
        recall_target=float(recall),
        is_max_k=name == "approx_max_k",
        reduction_input_size_override=int(override),
        aggregate_to_topk=bool(aggregate),
    )
    return values, indices


def _count(
    x: ShapedArray,
    *,
    k: int,
    reduction_dimension: int,
    recall_target: float,
    is_max_k: bool,
    reduction_input_size_override: int,
    aggregate_to_topk: bool,
) -> int:
    """The number of results."""
    size = x.shape[reduction_dimension]
    lanes = _LANES_OF_VECTORS if x.ndim == 1 else _LANES
    if aggregate_to_topk or size <= lanes:
        return k if aggregate_to_topk else size
    if k == 1:
        return lanes
    reckoned = max(size, reduction_input_size_override)
    bins = reckoned if recall_target == 1 else min(int((1 - k) / math.log(recall_target)), reckoned)
    halvings = int(math.log2(reckoned / max(bins, lanes)))
    return size if halvings == 0 else math.ceil(math.ceil(size / lanes) / 2**halvings) * lanes


def _largest(x: Any, *, count: int, axis: int) -> list[Any]:
    return top_k(x, count, axis=axis)


def _smallest(x: Any, *, count: int, axis: int) -> list[Any]:
    places = iota_p.bind(dtype=_INDEX, shape=aval_of(x).shape, dimension=axis)
    ordered = sort_p.bind(x, places, dimension=axis, is_stable=True, num_keys=1)
    return [slice_in_dim(y, 0, count, axis=axis) for y in ordered]
