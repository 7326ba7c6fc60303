"""Collectives over named axes: psum, pmax, pmin, pmean, axis_index, axis_size.

Mapping the axis away turns each of them into an ordinary operation: a sum over the batch dimension, its positions.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xlamini.core.avals import ShapedArray
from xlamini.core.named_axes import size_of_axis
from xlamini.core.primitive import Axis, Primitive
from xlamini.core.pytree import tree_map
from xlamini.core.tangents import is_zero
from xlamini.primitives.arithmetic import div
from xlamini.primitives.elementwise import ANY, REAL, kind_of, mul
from xlamini.primitives.iota import iota
from xlamini.primitives.reductions import reduce_max, reduce_min
from xlamini.primitives.shape import reduce_sum_p

AxisName = Any


def psum(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The sum of each leaf of `x` over the named axis (or a tuple of them); NameError if there is no such axis.

    >>> xlamini.vmap(lambda x: psum(x, "i"), axis_name="i")(xlamini.numpy.arange(3.0))
    Array([3., 3., 3.], dtype=float32)
    """
    return _over_leaves(psum_p, x, axis_name, axis_index_groups)


def pmax(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The largest value of each leaf of `x` over the named axis, elementwise; NameError if there is no such axis."""
    return _over_leaves(pmax_p, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The smallest value of each leaf of `x` over the named axis, elementwise; NameError if there is no such axis."""
    return _over_leaves(pmin_p, x, axis_name, axis_index_groups)


def pmean(x: Any, axis_name: AxisName, *, axis_index_groups: Any = None) -> Any:
    """The mean of each leaf of `x` over the named axis; NameError if there is no such axis."""
    size = axis_size(axis_name)
    return tree_map(lambda v: div(v, size), psum(x, axis_name, axis_index_groups=axis_index_groups))


def axis_index(axis_name: AxisName) -> Any:
    """The position along the named axis, an int32 (along several axes, counted in row-major order).

    >>> xlamini.vmap(lambda x: axis_index("i"), axis_name="i")(xlamini.numpy.zeros(3))
    Array([0, 1, 2], dtype=int32)
    """
    position: Any = None
    for name in _names(axis_name):
        size_of_axis(name)
        here = axis_index_p.bind(axis_name=name)
        position = here if position is None else position * np.int32(size_of_axis(name)) + here
    return position


def axis_size(axis_name: AxisName) -> int:
    """The size of the named axis, or the product of the sizes of several.

    >>> xlamini.vmap(lambda x: x * axis_size("i"), axis_name="i")(xlamini.numpy.ones(3))
    Array([3., 3., 3.], dtype=float32)
    """
    size = 1
    for name in _names(axis_name):
        size *= size_of_axis(name)
    return size


def _names(axis_name: AxisName) -> tuple[Any, ...]:
    return tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)


def _over_leaves(primitive: Reduce, x: Any, axis_name: AxisName, groups: Any) -> Any:
    if groups is not None:
        raise NotImplementedError(f"{primitive.name}: axis_index_groups does not work under vmap; use two named axes")
    axes = _names(axis_name)
    size = axis_size(axes)
    return tree_map(lambda leaf: primitive.of_leaf(leaf, axes, size), x)


class Reduce(Primitive):
    """A reduction over named axes: `reduce` over a batch dimension, `of_equal` for a value that does not vary."""

    lacks: Mapping[str, str] = {"jvp": "not differentiable"}

    def __init__(self, name: str, reduce: Callable[..., Any], of_equal: Callable[[Any, int], Any]):
        self.reduce, self.of_equal = reduce, of_equal
        super().__init__(name)

    def of_leaf(self, leaf: Any, axes: tuple[Any, ...], size: int) -> Any:
        """The reduction of one leaf; of a Python number it is known at once."""
        return self.of_equal(leaf, size) if isinstance(leaf, int | float | complex) else self.bind(leaf, axes=axes)

    def shape_rule(self, x: ShapedArray, *, axes: tuple[Any, ...]) -> ShapedArray:
        if kind_of(x.dtype) not in (ANY if self is psum_p else REAL):
            raise TypeError(f"{self.name} does not accept dtype {x.dtype.name}; convert it with .astype")
        return x

    def batch(self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], *, axes: tuple[Any, ...]) -> Any:
        (x,), (dim,) = operands, dims
        if axis.name is None or axis.name not in axes:
            return self.bind(x, axes=axes), dim
        reduced = self.of_equal(x, axis.size) if dim is None else self.reduce(x, dim)
        others = tuple(a for a in axes if a != axis.name)
        return (self.bind(reduced, axes=others) if others else reduced), None

    def lower(self, ctx: Any, x: Any, *, axes: tuple[Any, ...]) -> Any:
        raise NameError(f"unbound axis name: {axes[0]!r} in {self.name}; map it with vmap(..., axis_name={axes[0]!r})")

    def named_axes(self, params: dict[str, Any]) -> tuple[Any, ...]:
        return params["axes"]


class PSum(Reduce):
    """The sum is linear, and its own transpose: each position's value reaches the sums of all."""

    lacks: Mapping[str, str] = {}

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, axes: tuple[Any, ...]) -> Any:
        out = self.bind(*primals, axes=axes)
        return out, tangents[0] if is_zero(tangents[0]) else self.bind(*tangents, axes=axes)

    def transpose(self, ct: Any, x: Any, *, axes: tuple[Any, ...]) -> list[Any]:
        return [self.bind(ct, axes=axes)]


def _times(x: Any, size: int) -> Any:
    return x * size if isinstance(x, int | float | complex) else mul(x, size)


psum_p = PSum("psum", lambda x, dim: reduce_sum_p.bind(x, axes=(dim,)), _times)
pmax_p = Reduce("pmax", lambda x, dim: reduce_max(x, (dim,)), lambda x, size: x)
pmin_p = Reduce("pmin", lambda x, dim: reduce_min(x, (dim,)), lambda x, size: x)


class AxisIndex(Primitive):
    """The position along a named axis."""

    name = "axis_index"
    lacks: Mapping[str, str] = {"jvp": "of integers only"}

    def shape_rule(self, *, axis_name: Any) -> ShapedArray:
        return ShapedArray((), np.dtype("int32"))

    def batch(self, axis: Axis, operands: Any, dims: Any, *, axis_name: Any) -> Any:
        return iota(np.int32, axis.size), 0

    def lower(self, ctx: Any, *, axis_name: Any) -> Any:
        raise NameError(
            f"unbound axis name: {axis_name!r} in axis_index; map it with vmap(..., axis_name={axis_name!r})"
        )

    def named_axes(self, params: dict[str, Any]) -> tuple[Any, ...]:
        return (params["axis_name"],)


axis_index_p = AxisIndex()
