"""AvalSharding: the sharding in a value's type, along the mesh axes of type Explicit."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xlamini.core.sharding.abstract_mesh import AbstractMesh, AxisName, parts_along
from xlamini.core.sharding.partition_spec import PartitionSpec

Names = tuple[AxisName, ...]


class AvalSharding:
    """A mesh and, for each dimension, the explicit axes that split it; at least one dimension is split.

    Interned like avals: equal shardings are one object. A value that is not split has None instead.
    """

    __slots__ = ("entries", "mesh")
    _interned: ClassVar[dict[tuple, AvalSharding]] = {}

    mesh: AbstractMesh
    entries: tuple[Names, ...]

    def __new__(cls, mesh: AbstractMesh, entries: tuple[Names, ...]) -> AvalSharding:
        key = (mesh, entries)
        self = cls._interned.get(key)
        if self is None:
            self = object.__new__(cls)
            self.mesh, self.entries = key
            cls._interned[key] = self
        return self

    def __reduce__(self) -> Any:
        return AvalSharding, (self.mesh, self.entries)

    @property
    def spec(self) -> PartitionSpec:
        """As a PartitionSpec with an entry for each dimension."""
        return PartitionSpec(*self.entries)

    def parts(self, dim: int) -> int:
        """Into how many parts a dimension is split."""
        return parts_along(self.mesh, self.entries[dim])

    def without(self, dim: int) -> AvalSharding | None:
        """The sharding without dimension `dim`."""
        return split_into(self.mesh, (*self.entries[:dim], *self.entries[dim + 1 :]))

    def inserted(self, dim: int) -> AvalSharding:
        """The sharding with a new, unsplit dimension at `dim`."""
        return AvalSharding(self.mesh, (*self.entries[:dim], (), *self.entries[dim:]))

    def on(self, mesh: AbstractMesh) -> AvalSharding | None:
        """The sharding on a mesh with the same axes but other axis types: entries for its explicit axes only."""
        return _along(mesh, self.entries)

    def marks(self) -> list[str]:
        """The suffix of each dimension's size in a printed type: `@x`, `@(x,y)`, or nothing."""
        return [_mark(names) for names in self.entries]

    def __repr__(self) -> str:
        return repr(self.spec)


def split_into(mesh: AbstractMesh, entries: tuple[Names, ...]) -> AvalSharding | None:
    """The sharding with these axis names for the dimensions; None if no dimension is split."""
    return AvalSharding(mesh, entries) if any(entries) else None


def with_entry(
    split: AvalSharding | None, dim: int, ndim: int, mesh: AbstractMesh, names: Names
) -> AvalSharding | None:
    """The sharding with dimension `dim` (of `ndim`) split along these axes; unchanged if another dimension uses one."""
    entries = ((),) * ndim if split is None else split.entries
    taken = {name for axes in entries for name in axes}
    return split if taken.intersection(names) else split_into(mesh, (*entries[:dim], names, *entries[dim + 1 :]))


def split_of(mesh: Any, spec: PartitionSpec, ndim: int) -> AvalSharding | None:
    """The part of a spec that names explicit axes of the mesh; None if it names none."""
    return _along(mesh, spec.names_of(ndim)) if mesh.explicit_axes else None


def _along(mesh: Any, entries: Sequence[Names]) -> AvalSharding | None:
    explicit = mesh.explicit_axes
    return split_into(mesh.abstract_mesh, tuple(tuple(n for n in names if n in explicit) for names in entries))


def _mark(names: Names) -> str:
    if len(names) == 1:
        return f"@{names[0]}"
    return f"@({','.join(map(str, names))})" if names else ""
