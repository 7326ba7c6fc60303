"""The programs in a recording: the profiler writes the HLO of each that ran into the plane `/host:metadata`.

`ProfileData` does not have them, so that this reads the bytes: a file is an `XSpace` in the wire format of protocol
buffers, where a message is a sequence of fields, each with its number, its kind and its value.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from xlamini.runtime.hlo.translation import text_of_proto

_PLANE, _PLANE_NAME, _EVENTS, _VALUE = 1, 2, 4, 2
_EVENT_NAME, _STAT, _BYTES, _MODULE, _MODULE_ID = 2, 5, 6, 1, 5
_METADATA = b"/host:metadata"
_NAMED = re.compile(r"(.*)\(-?\d+\)", re.DOTALL)
_VARINT, _FIXED64, _SEQUENCE, _FIXED32 = 0, 1, 2, 5

Field = tuple[int, int | memoryview]


class RecordedProgram(NamedTuple):
    """A program in a recording: the name of its module, that name with the number by which events name it, its HLO."""

    name: str
    program: str
    proto: bytes

    @property
    def number(self) -> int:
        """The number of its module."""
        return number_of_module(self.proto)

    def to_string(self) -> str:
        """Its text; RuntimeError if this version of XLA cannot read it."""
        return text_of_proto(self.proto)


def number_of_module(proto: bytes) -> int:
    """The number of an `HloModule`, which is left out if it is 0."""
    numbers = (value for field, value in _fields(memoryview(proto)) if field == _MODULE_ID)
    return next((number for number in numbers if isinstance(number, int)), 0)


def recorded_programs(xspace: bytes) -> list[RecordedProgram]:
    """The programs in the bytes of a recording; ValueError for what is none."""
    planes = _parts(memoryview(xspace), _PLANE)
    found = next((plane for plane in planes if next(_parts(plane, _PLANE_NAME), b"") == _METADATA), memoryview(b""))
    events = (event for entry in _parts(found, _EVENTS) for event in _parts(entry, _VALUE))
    return [program for event in events for program in _programs(event)]


def _programs(event: memoryview) -> Iterator[RecordedProgram]:
    """The program that an entry of the table of events has; its only stat of bytes is an `HloProto`."""
    name = bytes(next(_parts(event, _EVENT_NAME), b"")).decode(errors="replace")
    named = _NAMED.fullmatch(name)
    if named is not None:
        protos = (proto for stat in _parts(event, _STAT) for proto in _parts(stat, _BYTES))
        modules = (bytes(module) for proto in protos for module in _parts(proto, _MODULE))
        yield from (RecordedProgram(named[1], name, module) for module in modules)


def _parts(message: memoryview, number: int) -> Iterator[memoryview]:
    """The values of the fields with this number that are sequences of bytes: texts, bytes and messages."""
    return (value for found, value in _fields(message) if found == number and isinstance(value, memoryview))


def _fields(message: memoryview) -> Iterator[Field]:
    at = 0
    while at < len(message):
        key, at = varint(message, at)
        kind = key & 7
        if kind == _VARINT:
            value, at = varint(message, at)
            yield key >> 3, value
            continue
        size, at = varint(message, at) if kind == _SEQUENCE else ({_FIXED64: 8, _FIXED32: 4}.get(kind, -1), at)
        if size < 0 or at + size > len(message):
            raise ValueError("it is no message of protocol buffers, or was cut off")
        yield key >> 3, message[at : at + size]
        at += size


def varint(message: memoryview, at: int) -> tuple[int, int]:
    """The number at a place, of seven bits in a byte, and the place behind it."""
    value = 0
    for index, byte in enumerate(message[at : at + 10]):
        value |= (byte & 127) << 7 * index
        if byte < 128:
            return value, at + index + 1
    raise ValueError("it is no message of protocol buffers, or was cut off")
