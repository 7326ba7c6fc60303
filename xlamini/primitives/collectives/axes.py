"""Named axes as arguments: their names, sizes and groups, checked; and axis_index and axis_size, which ask for them."""
from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from xlamini.core import Axis, Params, Primitive, ShapedArray, literal, manual_axis
from xlamini.core.program.named_axes import size_of_axis
from xlamini.core.sharding.facet import Sharding
from xlamini.core.sharding.forbidden import check_names
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.primitives.collectives.devices import is_manual, position
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.shape.iota import iota
from xlamini.runtime import Array

AxisName = Any
Groups = tuple[tuple[int, ...], ...] | None


def axis_size(axis_name: AxisName) -> int:
    """The size of the named axis, or the product of the sizes of several.

    >>> xlamini.vmap(lambda x: x * axis_size("i"), axis_name="i")(xlamini.numpy.ones(3))
    Array([3., 3., 3.], dtype=float32)
    """
    size = 1
    for name in names_of("axis_size", axis_name):
        size *= size_of_axis(name)
    return size


def axis_index(axis_name: AxisName) -> Array:
    """The position along the named axis, an int32 (along several axes, counted in row-major order).

    >>> xlamini.vmap(lambda x: axis_index("i"), axis_name="i")(xlamini.numpy.zeros(3))
    Array([0, 1, 2], dtype=int32)
    """
    position: Any = None
    for name in names_of("axis_index", axis_name):
        size = size_of_axis(name)
        here = axis_index_p.bind(axis_name=name)
        position = here if position is None else position * _number(size) + here
    return convert(0, np.int32) if position is None else position


def _number(size: int) -> Any:
    return literal(size, np.int32) if type(size) is SymbolicSize else np.int32(size)


def _varying(vma: frozenset[Any], params: Params) -> frozenset[Any]:
    name = params["axis_name"]
    return vma if manual_axis(name) is None else vma | {name}


def _named_axes(params: Params) -> tuple[Any, ...]:
    return (params["axis_name"],)


class AxisIndex(Primitive):
    """The position along a named axis."""

    name = "axis_index"
    sharding: Sharding = Sharding(varying=_varying, named_axes=_named_axes)
    lacks: Mapping[str, str] = {"jvp": "of integers only"}

    def shape_rule(self, *, axis_name: Any) -> ShapedArray:
        return ShapedArray((), np.dtype("int32"))

    def batch(self, axis: Axis, operands: Any, dims: Any, *, axis_name: Any) -> Any:
        return iota(np.int32, axis.size), 0

    def lower(self, ctx: Any, *, axis_name: Any) -> Any:
        if not is_manual(ctx, (axis_name,)):
            raise unbound(self.name, axis_name)
        return position(ctx, axis_name)


axis_index_p: Final = AxisIndex()


def unbound(what: str, name: Any) -> NameError:
    """The error for a collective that is run without the axis it speaks of."""
    return NameError(
        f"unbound axis name: {name!r} in {what}; map it with vmap(..., axis_name={name!r}), or with "
        "shard_map over a mesh that has it"
    )


def names_of(what: str, axis_name: AxisName) -> tuple[Any, ...]:
    """The names, of which there may be one alone; ValueError for one given twice."""
    names = tuple(axis_name) if isinstance(axis_name, tuple | list) else (axis_name,)
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"{what}: axis_name {names} names the axis {name!r} twice; name each axis once")
    return names


def collective_axes(what: str, axis_name: AxisName) -> tuple[Any, ...]:
    """The names, of axes along which positions communicate; ForbiddenCollectiveError if they may not."""
    names = names_of(what, axis_name)
    check_names(what, names)
    return names


class Participants(NamedTuple):
    """The participants of a collective: all positions along the named axes, or those of each group; `size` of them."""

    names: tuple[Any, ...]
    groups: Groups
    size: int

    def size_along(self, name: Any) -> int:
        """The number of positions that participate along one of the axes."""
        return self.size if self.groups else axis_size(name)

    def __str__(self) -> str:
        return ", ".join(map(repr, self.names))


def participants(what: str, axis_name: AxisName, groups: Any, equal_sizes: bool = True) -> Participants:
    """The positions that `axis_name` and `axis_index_groups` select, for the collective `what`; checked.

    With `equal_sizes` groups must be of equal size, as the output's shape depends on it.
    """
    names = collective_axes(what, axis_name)
    found = None if groups is None else _checked_groups(what, names, groups, equal_sizes)
    return Participants(names, found, axis_size(names) if found is None else len(found[0]))


def _checked_groups(what: str, names: Sequence[Any], groups: Any, equal_sizes: bool) -> tuple[tuple[int, ...], ...]:
    """The groups as tuples; ValueError unless they part the axis."""
    if len(names) != 1:
        raise ValueError(f"{what}: axis_index_groups are of one axis, but axis_name is {tuple(names)}")
    found = tuple(tuple(map(operator.index, group)) for group in groups)
    size = size_of_axis(names[0])
    if sorted(i for group in found for i in group) != list(range(size)):
        raise ValueError(
            f"{what}: axis_index_groups must cover all indices exactly once: those of {names[0]!r} are 0 to "
            f"{size - 1}, the groups are {[list(group) for group in found]}"
        )
    if equal_sizes and len(set(map(len, found))) > 1:
        sizes = sorted(map(len, found))
        raise ValueError(f"{what}: axis_index_groups must be of one size, but have {sizes} positions")
    return found


def dimension(what: str, argument: str, value: Any, ndim: int) -> int:
    """A dimension counted from the front; ValueError if there is none of this number."""
    number = operator.index(value)
    if not -ndim <= number < ndim:
        takes = f"it takes {-ndim} to {ndim - 1}" if ndim else "a scalar has no dimension"
        raise ValueError(f"{what}: {argument} {number} is out of range for rank {ndim}; {takes}")
    return number % ndim
