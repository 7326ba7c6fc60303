"""The binary file format of xlamini: four parts, of which the first three are lines of text.

    xlamini program, format 1            the kind of file and its format version
    SHA-256 of the rest
    {"name": …, …}                       the header, as JSON
    the body, compressed

The checksum is compared before anything but the first line is parsed, and reading never executes code, as unpickling
would. The checksum protects from damage, not from malice: so the types of the header's fields are checked, and the body
is decompressed no further than the header says.
"""
from __future__ import annotations

import errno
import hashlib
import itertools
import json
import os
import stat
import threading
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

from xlamini.core import LoadError

_CHECKSUM_BYTES = 65
_LARGEST_BODY = 2**36
"""More bytes than any program and its arrays have; for files whose header does not say how many there are."""

Header = dict[str, Any]
T = TypeVar("T")


class Damaged(Exception):
    """The file is corrupt, truncated or of another kind."""


Field = type | tuple[type, ...]


class Kind(NamedTuple):
    """A kind of file: its title, format version, required header fields by type, and its noun in error messages."""

    title: str
    version: int
    fields: Mapping[str, Field]
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
        fields = self._parse(header)
        return fields, _inflated(body, _length(fields))

    def read(self, data: bytes, build: Callable[[Header, list[bytes]], T], again: str, begin: str = "") -> T:
        """Parse a file: the result of `build` on the header and the parts of the body, whose sizes the header lists.

        Raises LoadError if that fails; its message starts with `begin`, and `again` says how to write the file anew.
        """

        def make() -> T:
            header, body = self.unpacked(data)
            return build(header, split_body(body, header["sizes"]))

        return parsed(make, again, begin)

    def read_header(self, file: BinaryIO) -> Header:
        """The header alone, for display."""
        self._check_magic(file.read(len(self.magic)))
        checksum, rest = file.read(_CHECKSUM_BYTES), file.read()
        if checksum != _checksum(rest):
            raise Damaged("has another checksum than it should")
        return self._parse(rest.partition(b"\n")[0])

    def _check_magic(self, line: bytes) -> None:
        if line == self.magic:
            return
        if line.startswith(f"{self.title}, format ".encode()):
            found = line.rpartition(b" ")[2].split(b"\n")[0].decode(errors="replace")
            later = ", so a later xlamini wrote it" if found.isdigit() and int(found) > self.version else ""
            raise Damaged(f"does not begin as {self.noun} does: it is in format {found}, not {self.version}{later}")
        raise Damaged(f"does not begin as {self.noun} does")

    def _parse(self, line: bytes) -> Header:
        try:
            header = json.loads(line)
        except (ValueError, RecursionError):
            raise Damaged("has a header that cannot be read") from None
        if not isinstance(header, dict) or not header.keys() >= self.fields.keys():
            raise Damaged("has a header that is not complete")
        for name, kind in self.fields.items():
            number = kind is int or kind == (int, float)
            if not isinstance(header[name], kind) or (number and isinstance(header[name], bool)):
                raise Damaged(f"has a header whose field {name!r} cannot be {str(header[name])[:40]!r}")
        return header


def parsed(make: Callable[[], T], again: str, begin: str) -> T:
    """What `make` makes of a file; LoadError, as of `Kind.read`, for a file of which it makes nothing."""
    try:
        return make()
    except LoadError:
        raise
    except Damaged as error:
        raise LoadError(f"{begin}it {error}; {again}, or copy it anew") from None
    except (KeyError, TypeError, AttributeError, IndexError, OverflowError, RecursionError) as error:
        raise LoadError(f"{begin}its header cannot be read: {error!r}") from None
    except ValueError as error:
        raise LoadError(f"{begin}{error}") from None


def _length(header: Header) -> int:
    sizes = header.get("sizes")
    if sizes is None:
        return _LARGEST_BODY
    if not all(type(size) is int and 0 <= size <= _LARGEST_BODY for size in sizes):
        raise Damaged("has a header with sizes that are none")
    return sum(sizes)


def _inflated(body: bytes, most: int) -> bytes:
    """The decompressed body; Damaged if it has more than `most` bytes, of which no more are decompressed."""
    inflate = zlib.decompressobj()
    try:
        found = inflate.decompress(body, most + 1)
    except zlib.error as error:
        raise Damaged(f"cannot be decompressed: {error}") from None
    except MemoryError:
        raise Damaged("needs more memory than there is") from None
    if len(found) > most or not inflate.eof:
        raise Damaged("has a body of another size than its header says")
    return found


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


def open_regular(path: str, most: int = _LARGEST_BODY) -> BinaryIO:
    """Open a file for reading; Damaged for a link, a pipe, on which a read would wait, and more than `most` bytes."""
    flags = [getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_BINARY")]
    try:
        descriptor = os.open(path, os.O_RDONLY | sum(flags))
    except OSError as error:
        raise Damaged("is a link") if error.errno == errno.ELOOP else error from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > most:
        os.close(descriptor)
        raise Damaged("is no regular file" if status.st_size <= most else "is larger than any program")
    return os.fdopen(descriptor, "rb")


def write_file(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a file that the user names, whole or not at all; an OSError has no frames of the standard library.

    A link stays a link, and a device or a pipe is written to.
    """
    where = os.path.realpath(path)
    try:
        if os.path.exists(where) and not os.path.isfile(where):
            Path(where).write_bytes(data)
        else:
            replace_file(where, data)
    except OSError as error:
        raise error.with_traceback(None) from None


def replace_file(path: str, data: bytes, temporary: str | None = None, mode: int = 0o666) -> None:
    """Write under a temporary name in the same folder, then rename: a reader sees all of the old file or of the new.

    What has the name goes, be it a link or a pipe: nothing is written through it. OSError, and nothing has changed, if
    it cannot go: it is a folder, or another user's in a folder where each may remove only what is theirs.
    """
    temporary = temporary or f"{path}.{os.getpid()}-{threading.get_ident()}-{time.time_ns()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            os.remove(temporary)
        raise


def _checksum(body: bytes) -> bytes:
    return hashlib.sha256(body).hexdigest().encode() + b"\n"
