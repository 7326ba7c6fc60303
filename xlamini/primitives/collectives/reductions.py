"""Reductions over named axes: psum, pmean, pmax, pmin.

Under vmap each of them becomes the ordinary reduction over the batch dimension.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

import numpy as np

from xlamini.core import (
    Axis,
    Dims,
    Params,
    ShapedArray,
    Values,
    aval_of,
    hooks,
    is_zero,
    literal,
    manual_axis,
    tree_map,
)
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.primitives.base.batch_ops import move_batch_dim
from xlamini.primitives.base.dtype_kinds import ANY, BOOL, REAL, kind_of
from xlamini.primitives.base.elementwise import mul
from xlamini.primitives.base.promotion import promoted_inexact
from xlamini.primitives.collectives.axes import AxisName, Participants, participants
from xlamini.primitives.collectives.base import Collective, LinearCollective, Stacked, in_groups
from xlamini.primitives.collectives.casts import terms_along
from xlamini.primitives.collectives.devices import all_reduced, groups_along
from xlamini.primitives.elementwise.arithmetic import div
from xlamini.primitives.elementwise.comparison import eq
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.reductions.reductions import reduce_max, reduce_min
from xlamini.primitives.shape.shape import reduce_sum_p


def psum(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The sum of each leaf of `x` over the named axis (or a tuple of them); booleans are counted.

    `axis_index_groups`, a list of lists of positions, sums within each group. Raises NameError if there is no such
    axis, ValueError for groups that do not part it.

    >>> xlamini.vmap(lambda x: psum(x, "i"), axis_name="i")(xlamini.numpy.arange(3.0))
    Array([3., 3., 3.], dtype=float32)
    """
    return _over_leaves(psum_p, x, axis_name, axis_index_groups)


def pmax(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The largest value of each leaf of `x` over the named axis, elementwise; NameError if there is no such axis.

    >>> xlamini.vmap(lambda x: pmax(x, "i"), axis_name="i")(xlamini.numpy.arange(3.0))
    Array([2., 2., 2.], dtype=float32)
    """
    return _over_leaves(pmax_p, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The smallest value of each leaf of `x` over the named axis, elementwise; NameError if there is no such axis.

    >>> xlamini.vmap(lambda x: pmin(x, "i", axis_index_groups=[[0, 2], [1]]), axis_name="i")(xlamini.numpy.arange(3.0))
    Array([0., 1., 0.], dtype=float32)
    """
    return _over_leaves(pmin_p, x, axis_name, axis_index_groups)


def pmean(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The mean of each leaf of `x` over the named axis, or each group of it; NameError if there is no such axis.

    >>> xlamini.vmap(lambda x: pmean(x, "i"), axis_name="i")(xlamini.numpy.arange(3.0))
    Array([1., 1., 1.], dtype=float32)
    """
    sums = _over_leaves(psum_p, x, axis_name, axis_index_groups, "pmean")
    count = psum(1, axis_name, axis_index_groups=axis_index_groups)
    return tree_map(lambda v: _divided(v, count), sums)


def _divided(total: Any, count: Any) -> Any:
    """The mean; of integers a float."""
    (total,) = promoted_inexact("pmean", total)
    dtype = aval_of(total).dtype
    number = literal(count, dtype) if type(count) is SymbolicSize else count
    return div(total, number if isinstance(number, int) else convert(number, dtype))


def _over_leaves(primitive: CollectiveReduction, x: Any, axis_name: AxisName, groups: Any, what: str = "") -> Any:
    positions = participants(what or primitive.name, axis_name, groups, equal_sizes=False)
    return tree_map(lambda leaf: primitive.of_leaf(leaf, positions), x) if positions.names else x


class CollectiveReduction(Collective):
    """A reduction over the named `axes`: `reduce` over a batch dimension, `of_equal` for a value that does not vary."""

    hlo: str
    of_equal: Callable[[Any, int], Any]
    reduce: Callable[..., Any]

    def __init__(self, name: str, hlo: str, reduce: Callable[..., Any], of_equal: Callable[[Any, int], Any]):
        self.hlo, self.reduce, self.of_equal = hlo, reduce, of_equal
        super().__init__(name)

    def shape_rule(self, x: ShapedArray, **params: Any) -> ShapedArray:
        if kind_of(x.dtype) not in (ANY if self is psum_p else REAL | BOOL):
            raise TypeError(f"{self.name} does not accept dtype {x.dtype.name}; convert it with .astype")
        return x

    def batch(
        self, axis: Axis, operands: Values, dims: Dims, *, axes: tuple[Any, ...], **params: Any
    ) -> Any:
        (x,), (dim,) = operands, dims
        if axis.name is None or axis.name not in axes:
            return self.bind(x, axes=axes, **params), dim
        groups = params["axis_index_groups"]
        if groups is not None:
            return in_groups(self.stacked, move_batch_dim(x, axis.size, dim, 0), groups, params)
        reduced = self.of_equal(x, axis.size) if dim is None else self.reduce(x, dim)
        others = tuple(a for a in axes if a != axis.name)
        return (self.bind(reduced, axes=others, **params) if others else reduced), None

    def stacked(self, x: Any, size: int, **params: Any) -> Stacked:
        return self.reduce(x, 0), None

    def varying(self, vma: frozenset[Any], params: Params) -> frozenset[Any]:
        """The result is invariant, unless there are groups; without vma checks nothing relies on it."""
        same = [a.name for a in map(manual_axis, params["axes"]) if a is not None and a.checked]
        return vma if params["axis_index_groups"] else vma - frozenset(same)

    def lower_over_mesh(self, ctx: Any, x: Any, *, axes: tuple[Any, ...], axis_index_groups: Any) -> Any:
        return all_reduced(ctx, x, groups_along(ctx, axes, axis_index_groups), self.hlo)

    def named_axes(self, params: Params) -> tuple[Any, ...]:
        return params["axes"]

    def of_leaf(self, leaf: Any, positions: Participants) -> Any:
        """The reduction of one leaf; that of a Python number is computed while tracing."""
        groups = positions.groups
        equal_sizes = groups is None or len(set(map(len, groups))) == 1
        if isinstance(leaf, int | float | complex) and equal_sizes:
            return self.of_equal(leaf, positions.size)
        return self.bind(self.countable(leaf, positions.names), axes=positions.names, axis_index_groups=groups)

    def countable(self, leaf: Any, names: tuple[Any, ...]) -> Any:
        """A leaf in a form that can be reduced along these axes."""
        return leaf


class Sum(CollectiveReduction, LinearCollective):
    """The sum is linear, and its own transpose: each position's value reaches the sums of all.

    Where all devices of a mesh share one sum, and so its cotangent, that is what each value's cotangent is.
    """

    def countable(self, leaf: Any, names: tuple[Any, ...]) -> Any:
        if aval_of(leaf).explicit_sharding is not None:
            leaf = terms_along(leaf, names)
        return convert(leaf, np.dtype("int32")) if aval_of(leaf).dtype == bool else leaf

    def transpose(self, ct: Any, x: Any, *, axes: tuple[Any, ...], **params: Any) -> Values:
        shared = x.aval.vma - aval_of(ct).vma
        rest = tuple(a for a in axes if a not in shared)
        found = self.bind(ct, axes=rest, **params) if rest else ct
        return [hooks.cast_varying(found, shared.intersection(axes))]


class CollectiveExtremum(CollectiveReduction):
    """The tangent of an extremum is the mean of the tangents of those that attain it."""

    lacks: Mapping[str, str] = {}
    checks = NO_NEW_NAN

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        (x,), (tangent,) = primals, tangents
        out = self.bind(x, **params)
        if is_zero(tangent):
            return out, tangent
        attains = convert(eq(x, out), aval_of(tangent).dtype)
        share = div(attains, psum_p.bind(attains, **params))
        return out, psum_p.bind(mul(tangent, share), **params)

    def transpose(self, ct: Any, x: Any, **params: Any) -> NoReturn:
        raise NotImplementedError(f"{self.name} is not linear, so it has no transpose")


def _times(x: Any, size: int) -> Any:
    return x * size if isinstance(x, int | float | complex) else mul(x, size)


psum_p: Final = Sum("psum", "stablehlo.add", lambda x, dim: reduce_sum_p.bind(x, axes=(dim,)), _times)
pmax_p: Final = CollectiveExtremum("pmax", "stablehlo.maximum", lambda x, dim: reduce_max(x, (dim,)), lambda x, size: x)
pmin_p: Final = CollectiveExtremum("pmin", "stablehlo.minimum", lambda x, dim: reduce_min(x, (dim,)), lambda x, size: x)
