"""The binary file format of xlamini: four parts, of which the first three are lines of text.

    xlamini program, format 1            the kind of file and its format version
    SHA-256 of the rest
    {"name": …, …}                       the header, as JSON
    the body, compressed

The checksum is compared before anything but the first line is parsed, and reading never executes code, as unpickling
would.
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

from xlamini.core import LoadError

_CHECKSUM_BYTES = 65
_LONGEST_HEADER = 2**24

Header = dict[str, Any]
T = TypeVar("T")


class Damaged(Exception):
    """The file is corrupt, truncated or of another kind."""


class Kind(NamedTuple):
    """A kind of file: its title, format version, required header fields, and the noun for it in error messages."""

    title: str
    version: int
    fields: frozenset[str]
    noun: str

    @property
    def magic(self) -> bytes:
        """The magic bytes: the first line of the file."""
        return f"{self.title}, format {self.version}\n".encode()

    def packed(self, header: Header, body: bytes) -> bytes:
        """The bytes of a file with this header and body."""
        # Level 1 compresses a program to a fifth of its size, in a tenth of the time that XLA takes to serialize it.
        rest = json.dumps(header).encode() + b"\n" + zlib.compress(body, 1)
        return self.magic + _checksum(rest) + rest

    def unpacked(self, data: bytes) -> tuple[Header, bytes]:
        """The header and body of a file's bytes; raises Damaged if the checksum does not match."""
        self._check_magic(data[: len(self.magic)])
        start = len(self.magic) + _CHECKSUM_BYTES
        rest = data[start:]
        if data[len(self.magic) : start] != _checksum(rest):
            raise Damaged("has another checksum than it should")
        header, _, body = rest.partition(b"\n")
        try:
            return self._parse(header), zlib.decompress(body)
        except zlib.error as error:
            raise Damaged(f"cannot be decompressed: {error}") from None

    def read(self, data: bytes, build: Callable[[Header, list[bytes]], T], again: str, begin: str = "") -> T:
        """Parse a file: the result of `build` on the header and the parts of the body, whose sizes the header lists.

        Raises LoadError if that fails; its message starts with `begin`, and `again` says how to write the file anew.
        """
        try:
            header, body = self.unpacked(data)
            return build(header, split_body(body, header["sizes"]))
        except LoadError:
            raise
        except Damaged as error:
            raise LoadError(f"{begin}it {error}; {again}, or copy it anew") from None
        except (KeyError, TypeError, AttributeError) as error:
            raise LoadError(f"{begin}its header cannot be read: {error!r}") from None
        except ValueError as error:
            raise LoadError(f"{begin}{error}") from None

    def read_header(self, file: BinaryIO) -> Header:
        """The header alone, for display; the checksum is not compared."""
        self._check_magic(file.read(len(self.magic)))
        file.read(_CHECKSUM_BYTES)
        return self._parse(file.readline(_LONGEST_HEADER))

    def _check_magic(self, line: bytes) -> None:
        if line == self.magic:
            return
        if line.startswith(f"{self.title}, format ".encode()):
            found = line.rpartition(b" ")[2].split(b"\n")[0].decode(errors="replace")
            raise Damaged(f"does not begin as {self.noun} does: it is in format {found}, not {self.version}")
        raise Damaged(f"does not begin as {self.noun} does")

    def _parse(self, line: bytes) -> Header:
        try:
            header = json.loads(line)
        except (ValueError, RecursionError):
            raise Damaged("has a header that cannot be read") from None
        if not isinstance(header, dict) or not header.keys() >= self.fields:
            raise Damaged("has a header that is not complete")
        return header


def split_body(body: bytes, sizes: Sequence[int]) -> list[bytes]:
    """Split a body into parts of these sizes; raises Damaged if they do not add up."""
    if sum(sizes) != len(body) or min(sizes, default=0) < 0:
        raise Damaged("has parts of other sizes than its header says")
    ends = list(itertools.accumulate(sizes, initial=0))
    return [body[start:end] for start, end in itertools.pairwise(ends)]


def read_file(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file; an OSError has no frames of the standard library."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise error.with_traceback(None) from None


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file; an OSError has no frames of the standard library."""
    try:
        Path(path).write_bytes(data)
    except OSError as error:
        raise error.with_traceback(None) from None


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode() + b"\n"
