"""Files of ours that hold bytes made by a machine: four parts, of which the first three are lines of text.

    xlamini program, format 1            what it is, and in which format
    SHA-256 of all that follows
    {"name": …, …}                       what people and the loader need to know, as JSON
    the bytes, compressed

Nothing of a file but its first line is looked at before its checksum has been compared; no part of it is ever run to
be read, as a pickle would be.
"""
from __future__ import annotations

import hashlib
import itertools
import json
import os
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

from xlamini.core.errors import LoadError

_CHECKSUM_BYTES = 65
_LONGEST_HEADER = 2**24

Header = dict[str, Any]
T = TypeVar("T")


class Damaged(Exception):
    """A file that is not what was once written there."""


class Kind(NamedTuple):
    """A kind of file: its first words, the number of its format, what its header must have, and what it is called."""

    title: str
    version: int
    fields: frozenset[str]
    noun: str

    @property
    def magic(self) -> bytes:
        """The first line."""
        return f"{self.title}, format {self.version}\n".encode()

    def packed(self, header: Header, body: bytes) -> bytes:
        """The file's bytes."""
        # Level 1 makes a program a fifth as large, in a tenth of the time that XLA takes to serialise it.
        rest = json.dumps(header).encode() + b"\n" + zlib.compress(body, 1)
        return self.magic + _checksum(rest) + rest

    def unpacked(self, data: bytes) -> tuple[Header, bytes]:
        """Header and body; Damaged unless both are as they were written."""
        self._check_magic(data[: len(self.magic)])
        start = len(self.magic) + _CHECKSUM_BYTES
        rest = data[start:]
        if data[len(self.magic) : start] != _checksum(rest):
            raise Damaged("has another checksum than it should")
        header, _, body = rest.partition(b"\n")
        try:
            return self._parsed(header), zlib.decompress(body)
        except zlib.error as error:
            raise Damaged(f"cannot be decompressed: {error}") from None

    def read(self, data: bytes, build: Callable[[Header, list[bytes]], T], again: str, begin: str = "") -> T:
        """What `build` makes of the header and of the parts, which have the header's `sizes`.

        LoadError for what cannot be read: its text begins with `begin`, and says how to write the file `again`.
        """
        try:
            header, body = self.unpacked(data)
            return build(header, parted(body, header["sizes"]))
        except LoadError:
            raise
        except Damaged as error:
            raise LoadError(f"{begin}it {error}; {again}, or copy it anew") from None
        except (KeyError, TypeError, AttributeError) as error:
            raise LoadError(f"{begin}its header cannot be read: {error!r}") from None
        except ValueError as error:
            raise LoadError(f"{begin}{error}") from None

    def read_header(self, file: BinaryIO) -> Header:
        """The header alone, to be shown: its checksum is not compared."""
        self._check_magic(file.read(len(self.magic)))
        file.read(_CHECKSUM_BYTES)
        return self._parsed(file.readline(_LONGEST_HEADER))

    def _check_magic(self, line: bytes) -> None:
        if line == self.magic:
            return
        if line.startswith(f"{self.title}, format ".encode()):
            found = line.rpartition(b" ")[2].split(b"\n")[0].decode(errors="replace")
            raise Damaged(f"does not begin as {self.noun} does: it is in format {found}, not {self.version}")
        raise Damaged(f"does not begin as {self.noun} does")

    def _parsed(self, line: bytes) -> Header:
        try:
            header = json.loads(line)
        except (ValueError, RecursionError):
            raise Damaged("has a header that cannot be read") from None
        if not isinstance(header, dict) or not header.keys() >= self.fields:
            raise Damaged("has a header that is not complete")
        return header


def parted(body: bytes, sizes: Sequence[int]) -> list[bytes]:
    """A body that is made of parts of these sizes, taken apart; Damaged if it is not."""
    if sum(sizes) != len(body) or min(sizes, default=0) < 0:
        raise Damaged("has parts of other sizes than its header says")
    ends = list(itertools.accumulate(sizes, initial=0))
    return [body[start:end] for start, end in itertools.pairwise(ends)]


def read_file(path: str | os.PathLike[str]) -> bytes:
    """A file's bytes; OSError without the frames of Python's own library."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise error.with_traceback(None) from None


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file; OSError without the frames of Python's own library."""
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise error.with_traceback(None) from None


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode() + b"\n"
