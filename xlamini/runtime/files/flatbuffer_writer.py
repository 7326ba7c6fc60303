"""A writer of FlatBuffers, for the reader of `flatbuffer` and those of others: a tree of parts becomes one buffer."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xlamini.runtime.files.flatbuffer import Fields


class Number(NamedTuple):
    """A number of a kind of `struct`."""

    kind: str
    value: int


class Numbers(NamedTuple):
    """A vector of numbers of one kind."""

    kind: str
    values: Sequence[int]


class Parts(NamedTuple):
    """A table: the names of all its fields, and the values of some."""

    fields: Fields
    values: Mapping[str, Part]


Part = Number | Numbers | Parts | str | bytes | Sequence["Parts | str"]


def packed(root: Parts) -> bytes:
    """The file whose first table this is."""
    out = bytearray(4)
    struct.pack_into("<I", out, 0, _table(out, root))
    return bytes(out)


def _table(out: bytearray, parts: Parts) -> int:
    """Append a table, then what it refers to; returns its place. Each field takes four bytes."""
    names = list(parts.values)
    offsets = [4 + 4 * names.index(name) if name in names else 0 for name in parts.fields]
    vtable = len(out)
    _append(out, struct.pack(f"<{len(offsets) + 2}H", 4 + 2 * len(offsets), 4 + 4 * len(names), *offsets))
    place = len(out)
    _append(out, struct.pack("<i", place - vtable) + bytes(4 * len(names)))
    for i, value in enumerate(parts.values.values()):
        _fill(out, place + 4 + 4 * i, value)
    return place


def _fill(out: bytearray, place: int, value: Part) -> None:
    """Write a number at a place, or append another part and write its offset there."""
    if isinstance(value, Number):
        struct.pack_into(f"<{value.kind}", out, place, value.value)
    else:
        target = _table(out, value) if isinstance(value, Parts) else _vector(out, value)
        struct.pack_into("<I", out, place, target - place)


def _vector(out: bytearray, value: Numbers | str | bytes | Sequence[Parts | str]) -> int:
    place = len(out)
    if isinstance(value, str):
        data = value.encode()
        _append(out, struct.pack("<I", len(data)) + data + b"\0")
    elif isinstance(value, bytes):
        _append(out, struct.pack("<I", len(value)) + value)
    elif isinstance(value, Numbers):
        _append(out, struct.pack(f"<I{len(value.values)}{value.kind}", len(value.values), *value.values))
    else:
        _append(out, struct.pack("<I", len(value)) + bytes(4 * len(value)))
        for i, each in enumerate(value):
            _fill(out, place + 4 + 4 * i, each)
    return place


def _append(out: bytearray, data: bytes) -> None:
    """Append bytes, filled up so that the next part lies at a multiple of four."""
    out += data + bytes(-len(data) % 4)
