"""The folder of compiled programs that later processes take instead of compiling.

A program is one file, named by the hash of all it depends on. It is written under another name and then renamed, so
readers see all of it or nothing, and writers need no lock: whoever comes last wins, with the same program. A file's
time of modification is when it was last used; the oldest go when the folder is full. Whatever is wrong with a file or
the folder is said once, and the program is compiled as if there were none.
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

from xlamini.core import config
from xlamini.core.frames import user_stacklevel
from xlamini.runtime.files.disk_entry import Damaged, Header, packed, unpacked
from xlamini.runtime.files.disk_key import Key

SUFFIX = ".xlamini"
MOST_ENTRIES = 20_000
"""More files would make looking through the folder slow."""
_ABANDONED_AFTER = 3600.0
_FULL_TO = 0.9


class Stats(NamedTuple):
    """What the cache did in this process."""

    hits: int = 0
    misses: int = 0
    stored: int = 0
    refused: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    seconds_loading: float = 0.0
    seconds_saved: float = 0.0


class _Memory:
    """What this process knows: its statistics, what it has complained of, how full each folder was."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.stats = Stats()
        self.said: set[str] = set()
        self.room: dict[str, int] = {}

    def count(self, **more: float) -> None:
        with self.lock:
            self.stats = self.stats._replace(**{name: getattr(self.stats, name) + n for name, n in more.items()})


_memory = _Memory()


def stats() -> Stats:
    """What the cache did in this process so far."""
    return _memory.stats


def folder() -> str | None:
    """The folder's absolute path; None while the cache is off."""
    if not config.programs_are_kept():
        return None
    named = config.compilation_cache_dir.value
    if "://" in named:
        raise ValueError(f"compilation_cache_dir must be a folder that this machine's system can open, got {named!r}")
    return os.path.abspath(os.path.expanduser(named))


def path_of(key: Key) -> str:
    """The file where a program is, or would be."""
    return f"{folder()}/{key.hash}{SUFFIX}"


def find(key: Key) -> tuple[Header, bytes] | None:
    """A program's header and serialised bytes if they are here and whole; the caller says `used` or `refuse`."""
    path = path_of(key)
    try:
        data = _read(path)
        if data is None:
            _memory.count(misses=1)
            return None
        header, program = unpacked(data)
        if header["parts"] != key.parts:
            raise Damaged("is of another program than its name says")
    except (Damaged, OSError) as error:
        refuse(key, error)
        return None
    _memory.count(bytes_read=len(data))
    return header, program


def _read(path: str) -> bytes | None:
    """The file's bytes; None if there is none. Damaged if another user may have written it."""
    try:
        with open(path, "rb") as file:
            _check_owner(os.fstat(file.fileno()))
            return file.read()
    except FileNotFoundError:
        return None


def _check_owner(status: os.stat_result) -> None:
    # A program is machine code: whoever can write it can do what this user can.
    if hasattr(os, "geteuid") and status.st_uid not in (0, os.geteuid()):
        raise Damaged(f"belongs to another user (number {status.st_uid})")
    if os.name == "posix" and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Damaged("may be written by other users (chmod go-w makes it yours alone)")


def used(key: Key, header: Header, seconds: float) -> None:
    """Count a program that was loaded, which took so long, and put it among those used last."""
    _memory.count(hits=1, seconds_loading=seconds, seconds_saved=max(header["seconds"] - seconds, 0.0))
    with contextlib.suppress(OSError):  # a folder that may only be read serves too
        os.utime(path_of(key))


def refuse(key: Key, error: Exception) -> None:
    """Say what is wrong with a program's file, and remove it."""
    _memory.count(misses=1, refused=1)
    path = path_of(key)
    report(path, f"the entry {path}, {key.name}, {_what(error)}; it is compiled anew", error)
    _remove(path)


def _what(error: Exception) -> str:
    return str(error) if isinstance(error, Damaged) else f"cannot be loaded: {error}"


def report(about: str, text: str, error: Exception) -> None:
    """Say what is wrong, once for each thing it is about."""
    if config.raise_persistent_cache_errors.value:
        raise RuntimeError(f"compilation cache: {text}") from error
    if about not in _memory.said:
        _memory.said.add(about)
        warnings.warn(f"compilation cache: {text}", UserWarning, user_stacklevel())


def store(key: Key, program: bytes, seconds: float, about: dict[str, Any]) -> None:
    """Keep a serialised program that took so long to compile; `about` describes it to people."""
    where = folder()
    assert where is not None
    header = {"name": key.name, "made": time.time(), "seconds": seconds, "parts": key.parts, "about": about}
    data = packed(header, program)
    if len(data) < config.persistent_cache_min_entry_size_bytes.value:
        return
    try:
        os.makedirs(where, mode=0o700, exist_ok=True)
        _write(where, path_of(key), data)
        _make_room(where, len(data))
    except OSError as error:
        report(where, f"nothing can be stored in {where}: {error}; programs are compiled and not kept", error)
        return
    _memory.count(stored=1, bytes_written=len(data))


def _write(where: str, path: str, data: bytes) -> None:
    temporary = f"{where}/writing-{os.getpid()}-{threading.get_ident()}-{time.time_ns()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
        os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise


class Held(NamedTuple):
    """A file of the folder: where, how large, when it was last used."""

    path: str
    size: int
    used: float


def held(where: str, suffix: str = SUFFIX) -> Iterator[Held]:
    """The folder's entries; those that vanish meanwhile are left out."""
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
            yield Held(item.path, status.st_size, status.st_mtime)


def _make_room(where: str, added: int) -> None:
    """Remove what was not used for longest if the folder is full; it is looked through only when it may be."""
    limit = config.compilation_cache_max_size.value
    with _memory.lock:
        left = _memory.room.get(where, 0) - added
        if left < 0:
            left = _evicted(where, limit)
        _memory.room[where] = left


def _evicted(where: str, limit: int) -> int:
    """Make the folder fit; the bytes that may be written before it must be looked through again."""
    for old in held(where, ".tmp"):
        if time.time() - old.used > _ABANDONED_AFTER:
            _remove(old.path)
    entries = sorted(held(where), key=lambda entry: entry.used)
    total, most = sum(entry.size for entry in entries), limit if limit >= 0 else float("inf")
    if total > most or len(entries) > MOST_ENTRIES:
        total = _removed_oldest(entries, total, _FULL_TO * most)
    return min(int(most - total) if limit >= 0 else 2**40, 2**24)


def _removed_oldest(entries: list[Held], total: int, most: float) -> int:
    spare = len(entries) - _FULL_TO * MOST_ENTRIES
    for i, entry in enumerate(entries):
        if total <= most and i >= spare:
            break
        _remove(entry.path)
        total -= entry.size
    return total


def clear(where: str) -> int:
    """Remove all programs of a folder; how many there were."""
    with _memory.lock:
        _memory.room.clear()
    return sum(_remove(entry.path) for entry in held(where))


def _remove(path: str) -> bool:
    try:
        Path(path).unlink()
    except OSError:
        return False
    return True
