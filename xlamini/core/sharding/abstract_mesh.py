"""AbstractMesh: the named axes of a mesh of devices and their sizes, without the devices."""

from __future__ import annotations

import enum
import math
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from xlamini.core.errors.api_boundary import api_boundary

AxisName = Hashable


class AxisType(enum.Enum):
    """Who says how a value is split along an axis of a mesh.

    >>> mesh = xlamini.make_mesh((1, 1), ("x", "y"), axis_types=(AxisType.Auto, AxisType.Explicit))
    >>> mesh.axis_types
    (Auto, Explicit)
    >>> xlamini.typeof(xlamini.device_put(jnp.ones((4, 2)), xlamini.NamedSharding(mesh, xlamini.P("x", "y"))))
    ShapedArray(float32[4,2@y])
    """

    Auto = enum.auto()
    """The compiler, guided by the shardings of arguments and by constraints."""
    Explicit = enum.auto()
    """The types of values, which carry their sharding."""
    Manual = enum.auto()
    """The program itself, which is written for one device."""

    def __repr__(self) -> str:
        return self.name


class ManualAxisType(NamedTuple):
    """What a type says of the manual axes of a mesh: along which of them the value varies, and is a partial sum.

    Along the axes `unreduced` devices have the terms of the value, along the axes `reduced` the value itself, whose
    cotangent is unreduced.

    >>> mesh = xlamini.make_mesh((1,), ("x",))
    >>> def part(x):
    ...     print(xlamini.typeof(x).manual_axis_type)
    ...     return x
    >>> _ = xlamini.shard_map(part, mesh=mesh, in_specs=xlamini.P("x"), out_specs=xlamini.P("x"))(jnp.ones(2))
    ManualAxisType(varying=frozenset({'x'}), unreduced=frozenset(), reduced=frozenset())
    """

    varying: frozenset[AxisName] = frozenset()
    unreduced: frozenset[AxisName] = frozenset()
    reduced: frozenset[AxisName] = frozenset()


class AbstractDevice(NamedTuple):
    """The kind, cores and platform of the devices of an abstract mesh: `AbstractDevice("TPU v5 lite", 1, "tpu")`.

    >>> xlamini.sharding.AbstractMesh((4,), ("x",), abstract_device=AbstractDevice("TPU v5 lite", 1, "tpu"))
    AbstractMesh('x': 4, axis_types=(Explicit,), device_kind=TPU v5 lite, num_cores=1, platform=tpu)
    """

    device_kind: str
    num_cores: int | None
    platform: str

    def __str__(self) -> str:
        return f"device_kind={self.device_kind}, num_cores={self.num_cores}, platform={self.platform}"

    def __repr__(self) -> str:
        return f"AbstractDevice({self})"


class AxesOfMesh:
    """What is known of a mesh from its axes alone."""

    axis_names: tuple[AxisName, ...]
    axis_sizes: tuple[int, ...]
    axis_types: tuple[AxisType, ...]

    @cached_property
    def shape(self) -> OrderedDict[AxisName, int]:
        """The size of each axis by its name."""
        return OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self) -> tuple[tuple[AxisName, int], ...]:
        """Pairs of name and size."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @cached_property
    def size(self) -> int:
        """How many devices it has."""
        return math.prod(self.axis_sizes) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        """Whether it has no axes, and so no devices."""
        return not self.axis_names

    @property
    def are_all_axes_explicit_or_manual(self) -> bool:
        """Whether the compiler decides along no axis."""
        return not self.auto_axes

    def _axes_of(self, kind: AxisType) -> tuple[AxisName, ...]:
        return tuple(n for n, t in zip(self.axis_names, self.axis_types, strict=True) if t is kind)

    @property
    def auto_axes(self) -> tuple[AxisName, ...]:
        """The axes along which the compiler decides."""
        return self._axes_of(AxisType.Auto)

    @cached_property
    def explicit_axes(self) -> tuple[AxisName, ...]:
        """The axes that types of values speak of."""
        return self._axes_of(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[AxisName, ...]:
        """The axes that the program deals with itself."""
        return self._axes_of(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether the compiler decides along each of them."""
        return len(self.auto_axes) == len(self.axis_names)

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether types speak of each of them."""
        return len(self.explicit_axes) == len(self.axis_names)

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether the program deals with each of them."""
        return len(self.manual_axes) == len(self.axis_names)

    def _axes_text(self) -> str:
        axes = [f"{name!r}: {size}" for name, size in self.shape_tuple] or ["()"]
        return ", ".join([*axes, f"axis_types={self.axis_types}"])


class AbstractMesh(AxesOfMesh):
    """Named axes and their sizes.

    Args:
      axis_sizes: the size of each axis.
      axis_names: their names, all different.
      axis_types: an `AxisType` for each of them, or one for all; by default the compiler decides.
      abstract_device: the kind of its devices, for those who ask it; meshes that differ in it alone are equal.

    >>> AbstractMesh((2, 4), ("x", "y")).shape["y"]
    4
    """

    abstract_device: AbstractDevice | None
    axis_sizes: tuple[int, ...]

    _internal_device_list = None

    @api_boundary
    def __init__(
        self,
        axis_sizes: Sequence[int],
        axis_names: Sequence[AxisName],
        axis_types: AxisType | Sequence[AxisType] | None = None,
        *,
        abstract_device: AbstractDevice | None = None,
    ):
        self.axis_sizes, self.abstract_device = tuple(axis_sizes), abstract_device
        self.axis_names: tuple[AxisName, ...] = checked_names("AbstractMesh", axis_names, len(self.axis_sizes))
        kinds = AxisType.Explicit if axis_types is None else axis_types
        self.axis_types: tuple[AxisType, ...] = checked_types("AbstractMesh", kinds, len(self.axis_sizes))

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """Itself."""
        return self

    def update(
        self,
        axis_sizes: Sequence[int] | None = None,
        axis_names: Sequence[AxisName] | None = None,
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> AbstractMesh:
        """The same mesh with what is given changed; ValueError where sizes, names and types differ in number."""
        sizes = self.axis_sizes if axis_sizes is None else axis_sizes
        names = self.axis_names if axis_names is None else axis_names
        types = self.axis_types if axis_types is None else axis_types
        return AbstractMesh(sizes, names, types, abstract_device=self.abstract_device)

    def update_axis_types(self, name_to_type: Mapping[AxisName, AxisType]) -> AbstractMesh:
        """The same axes, those that are named of other types; KeyError for a name that it does not have."""
        return self.update(axis_types=changed_types(self, name_to_type))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AbstractMesh):
            return NotImplemented
        return (self.shape_tuple, self.axis_types) == (other.shape_tuple, other.axis_types)

    def __hash__(self) -> int:
        return hash((self.shape_tuple, self.axis_types))

    def __repr__(self) -> str:
        devices = f", {self.abstract_device}" if self.abstract_device else ""
        return f"AbstractMesh({self._axes_text()}{devices})"


def parts_along(mesh: AxesOfMesh, names: Iterable[AxisName]) -> int:
    """Into how many parts what is split along these axes falls."""
    return math.prod(mesh.shape[name] for name in names)


def changed_types(mesh: AxesOfMesh, name_to_type: Mapping[AxisName, AxisType]) -> tuple[AxisType, ...]:
    """The types of a mesh's axes, some changed; KeyError for a name that it does not have."""
    for name in name_to_type:
        if name not in mesh.axis_names:
            raise KeyError(f"{name!r} is none of the axes {', '.join(map(repr, mesh.axis_names))}")
    pairs = zip(mesh.axis_names, mesh.axis_types, strict=True)
    return tuple(name_to_type.get(name, kind) for name, kind in pairs)


def checked_names(what: str, names: AxisName | Sequence[AxisName], rank: int) -> tuple[AxisName, ...]:
    """The names of a mesh's axes; ValueError unless there are `rank` different ones, TypeError for what is no list."""
    if isinstance(names, bool | int | float):
        raise TypeError(f"{what}: axis_names must be a string or a tuple of names, got {names!r}")
    found = (names,) if isinstance(names, str) or not isinstance(names, Sequence) else tuple(names)
    if len(found) != rank:
        raise ValueError(f"{what}: {rank} axes have the names {found!r}; give {rank} names")
    if len(set(found)) < len(found):
        raise ValueError(f"{what}: axis_names {found!r} has a name twice; give each axis its own")
    return found


def checked_types(what: str, types: AxisType | Sequence[AxisType] | None, rank: int) -> tuple[AxisType, ...]:
    """The types of a mesh's axes; ValueError unless there are `rank`, TypeError for what is no AxisType."""
    if types is None or isinstance(types, AxisType | str):
        types = (types or AxisType.Auto,) * rank
    if len(types) != rank:
        raise ValueError(f"{what}: {rank} axes have the axis_types {tuple(types)}; give {rank}, or one for all")
    if not all(isinstance(t, AxisType) for t in types):
        raise TypeError(f"{what}: axis_types must be of AxisType, got {tuple(types)}; for example AxisType.Auto")
    return tuple(types)
