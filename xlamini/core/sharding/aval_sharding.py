"""AvalSharding: the sharding in a value's type, along the mesh axes of type Explicit."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from xlamini.core.sharding.abstract_mesh import AbstractMesh, AxisName, parts_along
from xlamini.core.sharding.partition_spec import PartitionSpec

Names = tuple[AxisName, ...]


NO_AXES: frozenset[AxisName] = frozenset()


class AvalSharding:
    """A mesh, for each dimension the explicit axes that split it, and the axes of partial sums; at least one is named.

    Along the axes `unreduced` each device has a term of the value, which is the sum over these devices. Along the axes
    `reduced` devices have equal values, whose cotangent is unreduced. Interned like avals: equal shardings are one
    object. A value that is neither split nor one of these has None instead.
    """

    __slots__ = ("entries", "mesh", "reduced", "unreduced")
    _interned: ClassVar[dict[tuple, AvalSharding]] = {}

    mesh: AbstractMesh
    entries: tuple[Names, ...]
    unreduced: frozenset[AxisName]
    reduced: frozenset[AxisName]

    def __new__(
        cls,
        mesh: AbstractMesh,
        entries: tuple[Names, ...],
        unreduced: frozenset[AxisName] = NO_AXES,
        reduced: frozenset[AxisName] = NO_AXES,
    ) -> AvalSharding:
        key = (mesh, entries, unreduced, reduced)
        self = cls._interned.get(key)
        if self is None:
            self = object.__new__(cls)
            self.mesh, self.entries, self.unreduced, self.reduced = key
            cls._interned[key] = self
        return self

    def __reduce__(self) -> Any:
        return AvalSharding, (self.mesh, self.entries, self.unreduced, self.reduced)

    @property
    def spec(self) -> PartitionSpec:
        """As a PartitionSpec with an entry for each dimension."""
        return PartitionSpec(*self.entries, unreduced=self.unreduced, reduced=self.reduced)

    @property
    def dual(self) -> AvalSharding:
        """The sharding of a cotangent: unreduced where the value is reduced, and the reverse."""
        return AvalSharding(self.mesh, self.entries, self.reduced, self.unreduced)

    def parts(self, dim: int) -> int:
        """Into how many parts a dimension is split."""
        return parts_along(self.mesh, self.entries[dim])

    def with_entries(self, entries: Sequence[Names]) -> AvalSharding | None:
        """The sharding of a value that is split otherwise, with the same partial sums; None if nothing is left."""
        return split_into(self.mesh, tuple(entries), self.unreduced, self.reduced)

    def with_sums(self, unreduced: frozenset[AxisName], reduced: frozenset[AxisName]) -> AvalSharding | None:
        """The sharding of a value that is split in the same way, with other partial sums."""
        return split_into(self.mesh, self.entries, unreduced, reduced)

    def of_scalar(self) -> AvalSharding | None:
        """The sharding of a scalar with the same partial sums."""
        return self.with_entries(())

    def without(self, dim: int) -> AvalSharding | None:
        """The sharding without dimension `dim`."""
        return self.with_entries((*self.entries[:dim], *self.entries[dim + 1 :]))

    def inserted(self, dim: int) -> AvalSharding:
        """The sharding with a new, unsplit dimension at `dim`."""
        return AvalSharding(
            self.mesh, (*self.entries[:dim], (), *self.entries[dim:]), self.unreduced, self.reduced
        )

    def on(self, mesh: AbstractMesh) -> AvalSharding | None:
        """The sharding on a mesh with the same axes but other axis types: along its explicit axes only."""
        return _along(mesh, self.entries, self.unreduced, self.reduced)

    def marks(self) -> list[str]:
        """The suffix of each dimension's size in a printed type: `@x`, `@(x,y)`, or nothing."""
        return [_mark("@", names) for names in self.entries]

    def sum_marks(self) -> list[str]:
        """What a printed type says of partial sums: `U:x` where it is unreduced, `R:x` where reduced."""
        pairs = (("U:", self.unreduced), ("R:", self.reduced))
        return [_mark(letter, tuple(sorted(names, key=str))) for letter, names in pairs if names]

    def __repr__(self) -> str:
        return repr(self.spec)


def split_into(
    mesh: AbstractMesh,
    entries: tuple[Names, ...],
    unreduced: frozenset[AxisName] = NO_AXES,
    reduced: frozenset[AxisName] = NO_AXES,
) -> AvalSharding | None:
    """The sharding with these axis names for the dimensions, and these partial sums; None if there are none."""
    return AvalSharding(mesh, entries, unreduced, reduced) if any(entries) or unreduced or reduced else None


def with_entry(
    split: AvalSharding | None, dim: int, ndim: int, mesh: AbstractMesh, names: Names
) -> AvalSharding | None:
    """The sharding with dimension `dim` (of `ndim`) split along these axes; unchanged if it uses one already."""
    split = AvalSharding(mesh, ((),) * ndim) if split is None else split
    taken = {name for axes in split.entries for name in axes} | split.unreduced | split.reduced
    if not taken.isdisjoint(names):
        return split
    return split.with_entries((*split.entries[:dim], names, *split.entries[dim + 1 :]))


def split_of(mesh: Any, spec: PartitionSpec, ndim: int) -> AvalSharding | None:
    """The part of a spec that names explicit axes of the mesh; None if it names none."""
    return _along(mesh, spec.names_of(ndim), spec.unreduced, spec.reduced) if mesh.explicit_axes else None


def _along(
    mesh: Any, entries: Sequence[Names], unreduced: frozenset[AxisName], reduced: frozenset[AxisName]
) -> AvalSharding | None:
    explicit = frozenset(mesh.explicit_axes)
    split = tuple(tuple(n for n in names if n in explicit) for names in entries)
    return split_into(mesh.abstract_mesh, split, unreduced & explicit, reduced & explicit)


def _mark(sign: str, names: Names) -> str:
    if len(names) == 1:
        return f"{sign}{names[0]}"
    return f"{sign}({','.join(map(str, names))})" if names else ""
