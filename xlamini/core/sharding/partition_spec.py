"""PartitionSpec: along which axes of a mesh each dimension of an array is split."""

from __future__ import annotations

import enum
from collections.abc import Iterator, Set
from typing import Any, Final


class _Unconstrained:
    """What a dimension is whose splitting is left to the compiler."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "_UNCONSTRAINED"


_UNCONSTRAINED = _Unconstrained()


class UnreducedKind(enum.Enum):
    """How the terms along unreduced axes are combined to the array; only sums are supported.

    >>> UnreducedKind.sum
    <UnreducedKind.sum: 1>
    """

    sum = 1
    max = 2
    min = 3


class PartitionSpec:
    """For each dimension of an array the mesh axes that it is split along; usually imported as `P`.

    An entry is a name, a tuple of names (the first splits most coarsely), None (not split), or `P.UNCONSTRAINED` (the
    compiler may choose). Dimensions beyond the last entry are not split.

    >>> PartitionSpec("x", None, ("y", "z"))
    P('x', None, ('y', 'z'))
    """

    __slots__ = ("partitions", "reduced", "unreduced")
    __match_args__ = ("partitions",)

    UNCONSTRAINED: Final = _UNCONSTRAINED

    partitions: tuple[Any, ...]
    """The entries; a tuple of one name is that name, an empty one None."""

    unreduced: frozenset[Any]
    """The axes along which each device has a term, and the array is the sum of the terms."""
    reduced: frozenset[Any]
    """The axes along which devices have the same, and the cotangent of the array is unreduced."""

    def __init__(
        self,
        *partitions: Any,
        unreduced: Set[Any] = frozenset(),
        reduced: Set[Any] = frozenset(),
        unreduced_kind: UnreducedKind | None = None,
    ):
        if unreduced_kind is not None and unreduced_kind is not UnreducedKind.sum:
            raise NotImplementedError(
                f"PartitionSpec: unreduced_kind {unreduced_kind!r} is not supported; terms along unreduced axes are "
                "summed, so leave it out, and take the maximum or minimum with lax.pmax or lax.pmin"
            )
        self.partitions = tuple(map(_entry, partitions))
        self.unreduced, self.reduced = _NONE, _NONE
        if unreduced or reduced:
            self.unreduced, self.reduced = _names("unreduced", unreduced), _names("reduced", reduced)
            self._check_apart()

    def _check_apart(self) -> None:
        both = self.unreduced & self.reduced
        if both:
            raise ValueError(f"`unreduced` and `reduced` of a PartitionSpec overlap: both have {_listed(both)}")
        for what, names in (("unreduced", self.unreduced), ("reduced", self.reduced)):
            twice = self.axes & names
            if twice:
                raise ValueError(f"PartitionSpec: partitions overlap with {what} axes: both have {_listed(twice)}")

    def names_of(self, ndim: int) -> list[tuple[str, ...]]:
        """For each of an array's dimensions the names of the axes it is split along."""
        names = [_names_in(p) for p in self.partitions]
        return names + [()] * (ndim - len(names))

    @property
    def axes(self) -> frozenset[str]:
        """The axes that it names."""
        return frozenset(name for partition in self.partitions for name in _names_in(partition))

    @property
    def unreduced_kind(self) -> UnreducedKind | None:
        """How terms along unreduced axes are put together: their sum; None if there are none."""
        return UnreducedKind.sum if self.unreduced else None

    def update(self, **changes: Any) -> PartitionSpec:
        """A copy with other `partitions`, a tuple, or `unreduced` or `reduced` axes.

        >>> PartitionSpec("x").update(partitions=(None, "x"))
        P(None, 'x')
        """
        fields = {"partitions": self.partitions, "unreduced": self.unreduced, "reduced": self.reduced, **changes}
        return PartitionSpec(*fields.pop("partitions"), **fields)

    def inserted(self, dim: int, partition: Any = None) -> PartitionSpec:
        """That of an array with a further dimension at `dim`, which has this entry.

        >>> PartitionSpec("x", "y").inserted(1)
        P('x', None, 'y')
        """
        entries = [*self.partitions, *[None] * (dim - len(self))]
        return PartitionSpec(*entries[:dim], partition, *entries[dim:], unreduced=self.unreduced, reduced=self.reduced)

    # How a spec of a user's type that holds this one asks it for those of arrays, tangents and cotangents.

    def to_lo(self) -> list[PartitionSpec]:
        """The specs of the arrays: itself."""
        return [self]

    def to_tangent_spec(self) -> PartitionSpec:
        return self

    def to_ct_spec(self) -> PartitionSpec:
        """That of a cotangent: unreduced where the array is reduced, and the reverse."""
        return PartitionSpec(*self.partitions, unreduced=self.reduced, reduced=self.unreduced)

    def index(self, value: Any) -> int:
        """The first dimension with this entry; ValueError if there is none."""
        return self.partitions.index(_entry(value))

    def count(self, value: Any) -> int:
        """How many dimensions have this entry."""
        return self.partitions.count(_entry(value))

    def __iter__(self) -> Iterator[Any]:
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __getitem__(self, i: Any) -> Any:
        return self.partitions[i]

    def __add__(self, other: Any) -> PartitionSpec:
        if not isinstance(other, PartitionSpec | tuple):
            return NotImplemented
        more = other if isinstance(other, PartitionSpec) else PartitionSpec(*other)
        unreduced, reduced = self.unreduced | more.unreduced, self.reduced | more.reduced
        return PartitionSpec(*self.partitions, *more.partitions, unreduced=unreduced, reduced=reduced)

    def __radd__(self, other: Any) -> PartitionSpec:
        return PartitionSpec(*other) + self if isinstance(other, tuple) else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PartitionSpec):
            return NotImplemented
        if self.partitions != other.partitions:
            return False
        return self.unreduced == other.unreduced and self.reduced == other.reduced

    @property
    def _sums(self) -> tuple[frozenset[Any], frozenset[Any]]:
        return self.unreduced, self.reduced

    def __hash__(self) -> int:
        return hash(self.partitions)

    def __reduce__(self) -> Any:
        return _restored, (self.partitions, *self._sums)

    def __repr__(self) -> str:
        entries = [repr(p) for p in self.partitions]
        pairs = (("unreduced", self.unreduced), ("reduced", self.reduced))
        sums = [f"{what}={{{_listed(names)}}}" for what, names in pairs if names]
        return f"P({', '.join(entries + sums)}{',' if len(entries) == 1 and not sums else ''})"


_NONE: frozenset[Any] = frozenset()


def _restored(partitions: tuple[Any, ...], unreduced: frozenset[Any], reduced: frozenset[Any]) -> PartitionSpec:
    return PartitionSpec(*partitions, unreduced=unreduced, reduced=reduced)


def _names(what: str, given: Any) -> frozenset[Any]:
    if not isinstance(given, Set):
        raise TypeError(f"PartitionSpec: {what} must be a set of axis names, got {given!r}; write {{'x'}}")
    if None in given:
        raise ValueError(f"PartitionSpec: {what} cannot contain None; name axes of the mesh")
    return frozenset(given)


def _listed(names: Set[Any]) -> str:
    return ", ".join(sorted(map(repr, names)))


P = PartitionSpec


def _names_in(partition: Any) -> tuple[str, ...]:
    if partition is None or partition is _UNCONSTRAINED:
        return ()
    return partition if isinstance(partition, tuple) else (partition,)


def _entry(partition: Any) -> Any:
    if type(partition) is str or partition is None:
        return partition
    if isinstance(partition, tuple | list):
        return None if not partition else partition[0] if len(partition) == 1 else tuple(partition)
    return partition
