"""A reader of FlatBuffers: files of tables that refer to each other by offsets, none of which is trusted.

A file begins with the place of its first table. A table begins with how far before it its vtable is, which lists where
in the table each field is, 0 for one that is left out. Fields are numbers, or offsets of texts, vectors and tables.

Tables may refer to the same ones, so that a small file could stand for more than memory holds. What is read is counted,
and together it is no more than the file has bytes: no writer of trees puts a part into two.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from xlamini.runtime.files.file_format import Damaged

_DEEPEST = 100
"""How deep tables may be inside of each other."""
_MOST_FIELDS = 64

Fields = Sequence[str]
"""The names of a table's fields, in the order of their numbers."""


class _Buffer:
    """The bytes of a file, and how many of them may still be read."""

    def __init__(self, data: bytes):
        self.data: bytes = data
        self.left: int = len(data)

    def number(self, place: int, kind: str) -> int:
        """The number of a kind of `struct` at a place."""
        if not 0 <= place <= len(self.data) - struct.calcsize(f"<{kind}"):
            raise Damaged("has an offset that leads out of it")
        return struct.unpack_from(f"<{kind}", self.data, place)[0]

    def following(self, place: int) -> int:
        """The place to which the offset at a place leads."""
        return place + self.number(place, "I")

    def text(self, place: int) -> str:
        """The text at a place; Damaged if no zero follows it, ValueError if it is no UTF-8."""
        start, count = self.vector(place, 1)
        if self.number(start + count, "B"):
            raise Damaged("has a text without an end")
        return self.data[start : start + count].decode()

    def vector(self, place: int, size: int) -> tuple[int, int]:
        """Where the elements of a vector begin, and how many there are, of `size` bytes each."""
        count = self.number(place, "I")
        self.spend(4 + count * size)
        if place + 4 + count * size > len(self.data):
            raise Damaged("has a part that leads out of it")
        return place + 4, count

    def spend(self, count: int) -> None:
        """Count what is read."""
        self.left -= count
        if self.left < 0:
            raise Damaged("has parts that are longer than itself, or inside of each other")


class FlatTable:
    """A table whose fields have these names; Damaged for a place where there is none, or that has other fields too."""

    def __init__(self, buffer: _Buffer, place: int, fields: Fields, depth: int = 0):
        self._buffer, self._fields, self._depth = buffer, fields, depth
        self.place: int = place
        self._vtable = place - buffer.number(place, "i")
        self._size = buffer.number(self._vtable, "H")
        buffer.spend(max(4, buffer.number(self._vtable + 2, "H")))
        if depth > _DEEPEST:
            raise Damaged(f"has parts more than {_DEEPEST} deep inside of each other")
        if self._size > 4 + 2 * _MOST_FIELDS or any(map(self._offset, range(len(fields), (self._size - 4) // 2))):
            raise Damaged("has fields that this version does not know, so a later version wrote it")

    def _offset(self, number: int) -> int:
        """Where the field of a number is in the table; 0 if it was left out."""
        at = 4 + 2 * number
        return self._buffer.number(self._vtable + at, "H") if at + 2 <= self._size else 0

    def _place(self, name: str) -> int | None:
        offset = self._offset(self._fields.index(name))
        return self.place + offset if offset else None

    def _elements(self, name: str, size: int) -> tuple[int, int]:
        place = self._place(name)
        return (0, 0) if place is None else self._buffer.vector(self._buffer.following(place), size)

    def has(self, name: str) -> bool:
        """Whether a field was not left out."""
        return self._place(name) is not None

    def number(self, name: str, kind: str) -> int:
        """A number of a kind of `struct`; 0 if it was left out, as writers do with that."""
        place = self._place(name)
        return 0 if place is None else self._buffer.number(place, kind)

    def numbers(self, name: str, kind: str) -> list[int]:
        """A vector of numbers."""
        start, count = self._elements(name, struct.calcsize(f"<{kind}"))
        return list(struct.unpack_from(f"<{count}{kind}", self._buffer.data, start))

    def data(self, name: str) -> bytes:
        """A vector of bytes."""
        start, count = self._elements(name, 1)
        return self._buffer.data[start : start + count]

    def text(self, name: str) -> str:
        """A text, empty if it was left out; ValueError for one that is no UTF-8."""
        place = self._place(name)
        return "" if place is None else self._buffer.text(self._buffer.following(place))

    def texts(self, name: str) -> list[str]:
        """A vector of texts."""
        return [self._buffer.text(place) for place in self._targets(name)]

    def table(self, name: str, fields: Fields) -> FlatTable | None:
        """A table with fields of these names; None if it was left out."""
        place = self._place(name)
        return None if place is None else self._inner(self._buffer.following(place), fields)

    def tables(self, name: str, fields: Fields) -> list[FlatTable]:
        """A vector of tables with fields of these names."""
        return [self._inner(place, fields) for place in self._targets(name)]

    def _targets(self, name: str) -> list[int]:
        start, count = self._elements(name, 4)
        return [self._buffer.following(start + 4 * i) for i in range(count)]

    def _inner(self, place: int, fields: Fields) -> FlatTable:
        return FlatTable(self._buffer, place, fields, self._depth + 1)


def first_table(data: bytes, fields: Fields) -> FlatTable:
    """The table that a file begins with; Damaged if there is none."""
    buffer = _Buffer(data)
    if len(data) % 4:
        raise Damaged("is not of a length that such files have")
    return FlatTable(buffer, buffer.number(0, "I"), fields)


def rooted_at(data: bytes, table: FlatTable) -> bytes:
    """The file with another first table."""
    return struct.pack("<I", table.place) + data[4:]
