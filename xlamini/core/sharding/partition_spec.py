"""PartitionSpec: along which axes of a mesh each dimension of an array is split."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final


class _Unconstrained:
    """What a dimension is whose splitting is left to the compiler."""

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "_UNCONSTRAINED"


_UNCONSTRAINED = _Unconstrained()


class PartitionSpec:
    """For each dimension of an array the mesh axes that it is split along; usually imported as `P`.

    An entry is a name, a tuple of names (the first splits most coarsely), None (not split), or `P.UNCONSTRAINED` (the
    compiler may choose). Dimensions beyond the last entry are not split.

    >>> PartitionSpec("x", None, ("y", "z"))
    P('x', None, ('y', 'z'))
    """

    __slots__ = ("partitions",)
    __match_args__ = ("partitions",)

    UNCONSTRAINED: Final = _UNCONSTRAINED

    partitions: tuple[Any, ...]
    """The entries; a tuple of one name is that name, an empty one None."""

    def __init__(self, *partitions: Any):
        self.partitions = tuple(map(_entry, partitions))

    def names_of(self, ndim: int) -> list[tuple[str, ...]]:
        """For each of an array's dimensions the names of the axes it is split along."""
        names = [_names_in(p) for p in self.partitions]
        return names + [()] * (ndim - len(names))

    @property
    def axes(self) -> frozenset[str]:
        """The axes that it names."""
        return frozenset(name for partition in self.partitions for name in _names_in(partition))

    def inserted(self, dim: int, partition: Any = None) -> PartitionSpec:
        """That of an array with a further dimension at `dim`, which has this entry.

        >>> PartitionSpec("x", "y").inserted(1)
        P('x', None, 'y')
        """
        entries = [*self.partitions, *[None] * (dim - len(self))]
        return PartitionSpec(*entries[:dim], partition, *entries[dim:])

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
        return PartitionSpec(*self.partitions, *other)

    def __radd__(self, other: Any) -> PartitionSpec:
        return PartitionSpec(*other, *self.partitions) if isinstance(other, tuple) else NotImplemented

    def __eq__(self, other: object) -> bool:
        return self.partitions == other.partitions if isinstance(other, PartitionSpec) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.partitions)

    def __reduce__(self) -> Any:
        return PartitionSpec, self.partitions

    def __repr__(self) -> str:
        body = repr(self.partitions) if len(self.partitions) != 1 else f"({self.partitions[0]!r},)"
        return f"P{body}"


P = PartitionSpec


def _names_in(partition: Any) -> tuple[str, ...]:
    if partition is None or partition is _UNCONSTRAINED:
        return ()
    return partition if isinstance(partition, tuple) else (partition,)


def _entry(partition: Any) -> Any:
    if isinstance(partition, tuple | list):
        return None if not partition else partition[0] if len(partition) == 1 else tuple(partition)
    return partition
