"""Split: what the type of a value says of how the value lies on a mesh, along the mesh's axes of type Explicit."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xlamini.core.sharding.abstract_mesh import AbstractMesh, AxisName, parts_along
from xlamini.core.sharding.partition_spec import PartitionSpec

Names = tuple[AxisName, ...]


class Split:
    """A mesh, and for each dimension of a value the explicit axes that it is split along, at least one in all.

    Interned as avals are: equal ones are the same object. A value that is not split has None in its place.
    """

    __slots__ = ("entries", "mesh")
    _interned: ClassVar[dict[tuple, Split]] = {}

    mesh: AbstractMesh
    entries: tuple[Names, ...]

    def __new__(cls, mesh: AbstractMesh, entries: tuple[Names, ...]) -> Split:
        key = (mesh, entries)
        self = cls._interned.get(key)
        if self is None:
            self = object.__new__(cls)
            self.mesh, self.entries = key
            cls._interned[key] = self
        return self

    def __reduce__(self) -> Any:
        return Split, (self.mesh, self.entries)

    @property
    def spec(self) -> PartitionSpec:
        """The same as a PartitionSpec with an entry for each dimension."""
        return PartitionSpec(*self.entries)

    def parts(self, dim: int) -> int:
        """Into how many parts a dimension is split."""
        return parts_along(self.mesh, self.entries[dim])

    def without(self, dim: int) -> Split | None:
        """That of the value with a dimension taken off."""
        return split_into(self.mesh, (*self.entries[:dim], *self.entries[dim + 1 :]))

    def inserted(self, dim: int) -> Split:
        """That of the value with a further dimension at `dim`, which is whole."""
        return Split(self.mesh, (*self.entries[:dim], (), *self.entries[dim:]))

    def on(self, mesh: AbstractMesh) -> Split | None:
        """What it says of the explicit axes of the same mesh with other types of axes."""
        return _along(mesh, self.entries)

    def marks(self) -> list[str]:
        """What is written behind the sizes of the dimensions: `@x`, `@(x,y)`, or nothing."""
        return [_mark(names) for names in self.entries]

    def __repr__(self) -> str:
        return repr(self.spec)


def split_into(mesh: AbstractMesh, entries: tuple[Names, ...]) -> Split | None:
    """The Split with these names for the dimensions; None where nothing is split."""
    return Split(mesh, entries) if any(entries) else None


def with_entry(split: Split | None, dim: int, ndim: int, mesh: AbstractMesh, names: Names) -> Split | None:
    """The Split of a value of `ndim` dimensions of which one is split along these axes too, unless others are."""
    entries = ((),) * ndim if split is None else split.entries
    taken = {name for axes in entries for name in axes}
    return split if taken.intersection(names) else split_into(mesh, (*entries[:dim], names, *entries[dim + 1 :]))


def split_of(mesh: Any, spec: PartitionSpec, ndim: int) -> Split | None:
    """What a spec says of the explicit axes of a mesh."""
    return _along(mesh, spec.names_of(ndim)) if mesh.explicit_axes else None


def _along(mesh: Any, entries: Sequence[Names]) -> Split | None:
    explicit = mesh.explicit_axes
    return split_into(mesh.abstract_mesh, tuple(tuple(n for n in names if n in explicit) for names in entries))


def _mark(names: Names) -> str:
    if len(names) == 1:
        return f"@{names[0]}"
    return f"@({','.join(map(str, names))})" if names else ""
