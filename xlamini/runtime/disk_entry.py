"""One compiled program as a file: four parts, of which the first three are lines of text.

    xlamini program, format 1
    SHA-256 of all that follows
    {"name": …, "made": …, "parts": {…}, …}      what it is, as JSON
    the program as PJRT serialises it, compressed

The program is machine code, so nothing of a file is used before its checksum has been compared.
"""
from __future__ import annotations

import hashlib
import json
import zlib
from typing import Any, BinaryIO

MAGIC = b"xlamini program, format 1\n"
_CHECKSUM_BYTES = 65
_LONGEST_HEADER = 2**24
_FIELDS = {"name", "made", "seconds", "parts", "about"}

Header = dict[str, Any]


class Damaged(Exception):
    """A file that is not what was once written there."""


def packed(header: Header, program: bytes) -> bytes:
    """The file's bytes."""
    # Level 1 makes a program a fifth as large, in a tenth of the time that XLA takes to serialise it.
    body = json.dumps(header).encode() + b"\n" + zlib.compress(program, 1)
    return MAGIC + _checksum(body) + body


def unpacked(data: bytes) -> tuple[Header, bytes]:
    """Header and program; Damaged unless both are as they were written."""
    if not data.startswith(MAGIC):
        raise Damaged("does not begin as an entry does")
    start = len(MAGIC) + _CHECKSUM_BYTES
    body = data[start:]
    if data[len(MAGIC) : start] != _checksum(body):
        raise Damaged("has another checksum than it should")
    header, _, program = body.partition(b"\n")
    try:
        return _parsed(header), zlib.decompress(program)
    except zlib.error as error:
        raise Damaged(f"cannot be decompressed: {error}") from None


def read_header(file: BinaryIO) -> Header:
    """The header alone, to be shown: its checksum is not compared."""
    if file.read(len(MAGIC)) != MAGIC:
        raise Damaged("does not begin as an entry does")
    file.read(_CHECKSUM_BYTES)
    return _parsed(file.readline(_LONGEST_HEADER))


def _parsed(line: bytes) -> Header:
    try:
        header = json.loads(line)
    except ValueError:
        raise Damaged("has a header that cannot be read") from None
    if not isinstance(header, dict) or not header.keys() >= _FIELDS:
        raise Damaged("has a header that is not complete")
    return header


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode() + b"\n"
