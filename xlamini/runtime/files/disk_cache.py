"""The persistent compilation cache: a folder of compiled programs that later processes load instead of compiling.

An entry is one file, named by the hash of its key. It is written under a temporary name and then renamed, so that
readers see all of it or nothing and writers need no lock: the last writer wins, with an equal program. A file's
modification time is its last use; eviction removes the least recently used. A damaged file causes one warning, and the
program is compiled as on a miss. So does a folder that cannot be written, if somebody named it; it is not tried again.
"""
from __future__ import annotations

import contextlib
import os
import stat
import threading
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from xlamini.core import user_stacklevel
from xlamini.core.events import FOUND, MISSING, READ, REFUSED, STORED, Event, emit, subscribe
from xlamini.core.flags import cache_flags
from xlamini.runtime.files.cache_folder import folder
from xlamini.runtime.files.disk_entry import Damaged, Header, packed, unpacked
from xlamini.runtime.files.disk_key import Key
from xlamini.runtime.files.file_format import open_regular, replace_file

SUFFIX = ".xlamini"
MOST_ENTRIES = 20_000
"""A limit on files, because scanning a larger folder is slow."""
_LARGEST_ENTRY = 2**31
_ABANDONED_AFTER = 3600.0
_FULL_TO = 0.9


class Stats(NamedTuple):
    """Cache statistics of this process: programs found and not found, stored and refused; bytes; seconds.

    `seconds_saved` is what the programs that were loaded had taken to compile, less the time to load them.

    >>> before = xlamini.cache.stats()
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     xlamini.config.update("compilation_cache_dir", folder)
    ...     _ = xlamini.jit(lambda x: x + 43)(1.0)
    ...     xlamini.config.update("compilation_cache_dir", None)
    >>> xlamini.cache.stats().stored - before.stored, xlamini.cache.stats().hits - before.hits
    (1, 0)
    """

    hits: int = 0
    misses: int = 0
    stored: int = 0
    refused: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    seconds_loading: float = 0.0
    seconds_saved: float = 0.0


class _Memory:
    """State of this process: statistics, warnings already given, bytes left before each folder is scanned again.

    `unwritable` are the folders where a file could not be written. `sketches` are those of the folder last looked at,
    with its path and the time of its last change.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stats = Stats()
        self.said: set[str] = set()
        self.room: dict[str, int] = {}
        self.unwritable: set[str] = set()
        self.sketches: tuple[str, int, frozenset[str]] | None = None


_memory = _Memory()


def _count(event: Event) -> None:
    with _memory.lock:
        more = {name: getattr(_memory.stats, name) + n for name, n in event.program.items()}
        _memory.stats = _memory.stats._replace(**more)


subscribe(_count, READ, FOUND, MISSING, REFUSED, STORED)


def stats() -> Stats:
    """The cache statistics of this process so far."""
    return _memory.stats


def path_of(key: Key) -> str:
    """The path of the file for a key, whether or not it exists."""
    return f"{folder()}/{key.file_name}{SUFFIX}"


def may_have(sketch: str, where: str) -> bool:
    """Whether a file of the folder is named after this sketch. The names are read again when the folder has changed.

    True if they cannot be read: the look-up of the program says why.
    """
    try:
        changed = os.stat(where).st_mtime_ns
        known = _memory.sketches
        if known is None or known[:2] != (where, changed):
            found = frozenset({name[: len(sketch)] for name in os.listdir(where)})
            known = _memory.sketches = where, changed, found
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return sketch in known[2]


def find(key: Key) -> tuple[Header, bytes] | None:
    """Look up a program: its header and serialized bytes, or None; the caller calls `record_hit` or `reject`."""
    path = path_of(key)
    try:
        data = _read(path)
        if data is None:
            emit(MISSING, key.name, {"misses": 1})
            return None
        header, program = unpacked(data)
        if not _is_current(key, header):
            emit(MISSING, key.name, {"misses": 1})
            return None
    except (Damaged, OSError) as error:
        reject(key, error)
        return None
    emit(READ, key.name, {"bytes_read": len(data)})
    return header, program


def _is_current(key: Key, header: Header) -> bool:
    """Whether a file is the key's; not so if another source of the library made it. Damaged if it is another's."""
    if header["parts"] == key.parts:
        return True
    if key.is_outdated(header["parts"]):
        return False
    raise Damaged("is of another program than its name says")


def _read(path: str) -> bytes | None:
    """The bytes of a file; None if it does not exist. Raises Damaged if another user may have written it."""
    try:
        with open_regular(path, _LARGEST_ENTRY) as file:
            _check_owner(os.fstat(file.fileno()))
            return file.read()
    except FileNotFoundError:
        return None


def _check_owner(status: os.stat_result) -> None:
    # A program is machine code: whoever can write it can do what this user can.
    if not hasattr(os, "geteuid"):
        return  # users have no numbers, and modes say nothing of them
    if status.st_uid not in (0, os.geteuid()):
        raise Damaged(f"belongs to another user (number {status.st_uid})")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Damaged("may be written by other users (chmod go-w makes it yours alone)")


def record_hit(key: Key, header: Header, seconds: float) -> None:
    """Record a hit that took `seconds` to load, and mark the entry as most recently used."""
    saved = max(header["seconds"] - seconds, 0.0)
    emit(FOUND, key.name, {"hits": 1, "seconds_loading": seconds, "seconds_saved": saved}, seconds)
    with contextlib.suppress(OSError, NotImplementedError):  # the folder may be read-only
        os.utime(path_of(key), follow_symlinks=False)


def reject(key: Key, error: Exception) -> None:
    """Report a damaged entry, and remove its file."""
    emit(REFUSED, key.name, {"misses": 1, "refused": 1})
    path = path_of(key)
    _remove(path)  # first, as a warning may be an error
    say = report_unkept if isinstance(error, OSError) else report
    say(path, f"the entry {path}, {key.name}, {_describe(error)}; it is compiled anew", error)


def _describe(error: Exception) -> str:
    return str(error) if isinstance(error, Damaged) else f"cannot be loaded: {error}"


def report(about: str, text: str, error: Exception) -> None:
    """Warn once per subject, or raise if `raise_persistent_cache_errors` is set."""
    if cache_flags.raise_persistent_cache_errors.value:
        raise RuntimeError(f"compilation cache: {text}") from error
    if about not in _memory.said:
        _memory.said.add(about)
        warnings.warn(f"compilation cache: {text}", UserWarning, user_stacklevel())


def report_unkept(about: str, text: str, error: Exception) -> None:
    """Report that programs cannot be stored, unless nobody asked for that."""
    if cache_flags.folder_is_named() or cache_flags.raise_persistent_cache_errors.value:
        report(about, text, error)


def takes(seconds: float) -> bool:
    """Whether a program that took so long to compile is to be stored."""
    return seconds >= cache_flags.least_seconds() and folder() not in _memory.unwritable


def store(key: Key, program: bytes, seconds: float, about: dict[str, Any]) -> None:
    """Write a serialized program that took `seconds` to compile; `about` describes it in the cache report."""
    where = folder()
    if where is None:
        return
    header = {"name": key.name, "made": time.time(), "seconds": seconds, "parts": key.parts, "about": about}
    data = packed(header, program)
    if len(data) < cache_flags.persistent_cache_min_entry_size_bytes.value:
        return
    try:
        os.makedirs(where, mode=0o700, exist_ok=True)
        _write(where, path_of(key), data)
        _make_room(where, len(data))
    except OSError as error:
        report_unkept(where, f"nothing can be stored in {where}: {error}; programs are compiled and not kept", error)
        _memory.unwritable.add(where)
        return
    emit(STORED, key.name, {"stored": 1, "bytes_written": len(data)}, seconds)


def _write(where: str, path: str, data: bytes) -> None:
    temporary = f"{where}/writing-{os.getpid()}-{threading.get_ident()}-{time.time_ns()}.tmp"
    replace_file(path, data, temporary, 0o600)
    _memory.sketches = None  # two changes at once may have one time


class CacheFile(NamedTuple):
    """A file of the cache folder: its path, size in bytes and time of last use."""

    path: str
    size: int
    last_used: float


def files_in(where: str, suffix: str = SUFFIX) -> Iterator[CacheFile]:
    """The files of a folder with a suffix; files deleted during the scan are skipped."""
    try:
        found = list(os.scandir(where))
    except FileNotFoundError:
        return
    for item in found:
        if item.name.endswith(suffix):
            try:
                status = item.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue
            yield CacheFile(item.path, status.st_size, status.st_mtime)


def _make_room(where: str, added: int) -> None:
    """Evict least recently used entries if the folder is full; the folder is scanned only when it may be full."""
    limit = cache_flags.most_bytes()
    with _memory.lock:
        left = _memory.room.get(where, 0) - added
        if left < 0:
            left = _evict(where, limit)
        _memory.room[where] = left


def _evict(where: str, limit: int) -> int:
    """Evict entries until the folder fits; returns the bytes that may be written before the next scan."""
    for old in files_in(where, ".tmp"):
        if time.time() - old.last_used > _ABANDONED_AFTER:
            _remove(old.path)
    entries = sorted(files_in(where), key=lambda entry: entry.last_used)
    total, most = sum(entry.size for entry in entries), limit if limit >= 0 else float("inf")
    if total > most or len(entries) > MOST_ENTRIES:
        total = _remove_oldest(entries, total, _FULL_TO * most)
    return min(int(most - total) if limit >= 0 else 2**40, 2**24)


def _remove_oldest(entries: list[CacheFile], total: int, most: float) -> int:
    spare = len(entries) - _FULL_TO * MOST_ENTRIES
    for i, entry in enumerate(entries):
        if total <= most and i >= spare:
            break
        _remove(entry.path)
        total -= entry.size
    return total


def clear(where: str) -> int:
    """Remove all programs of a folder; returns their number."""
    with _memory.lock:
        _memory.room.clear()
    return sum(_remove(entry.path) for entry in files_in(where))


def _remove(path: str) -> bool:
    try:
        Path(path).unlink()
    except OSError:
        return False
    return True
