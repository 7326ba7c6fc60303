"""A look into the folder of compiled programs that processes share, why a program is not in it, and how to empty it.

The folder is among the user's caches, or what flag `compilation_cache_dir` names; `docs/cache.md` has the other flags
and what a program is known by.
"""
from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

from xlamini.core.flags.cache_flags import least_seconds
from xlamini.runtime.files import disk_cache as _disk
from xlamini.runtime.files.cache_folder import folder, why_off
from xlamini.runtime.files.disk_cache import Stats as Stats
from xlamini.runtime.files.disk_entry import Damaged, read_header
from xlamini.runtime.files.disk_key import SKETCH, Key
from xlamini.runtime.files.file_format import open_regular
from xlamini.staging.aot.jit_type import Wrapped
from xlamini.staging.compile.compile_cache import about, key_of
from xlamini.staging.compile.compile_request import CompileRequest, Options
from xlamini.staging.compile.program import with_flags
from xlamini.staging.compile.segments import lowered_segments
from xlamini.staging.run.jit.jit_api import jit
from xlamini.staging.trace.arguments import check_callable

Path = str | os.PathLike[str]

__all__ = ["Entry", "Stats", "clear", "directory", "entries", "explain", "stats"]


class Entry(NamedTuple):
    """A program in the folder.

    `name` is the function's; `size` is in bytes; `made` and `used` are seconds since 1970; `compile_seconds` is what it
    took to lower and compile. `parts` is all that it depends on, by name; `about` are its types and how many equations
    of each kind it has.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     xlamini.config.update("compilation_cache_dir", folder)
    ...     _ = xlamini.jit(lambda x: x + 41)(1.0)
    ...     [entry.about["equations"] for entry in xlamini.cache.entries()]
    ...     xlamini.config.update("compilation_cache_dir", None)
    [{'add': 1}]
    """

    name: str
    path: str
    size: int
    made: float
    used: float
    compile_seconds: float
    parts: dict[str, str]
    about: dict[str, Any]

    def __repr__(self) -> str:
        return (
            f"<{self.name}: {_size(self.size)}, compiled in {self.compile_seconds:.2g} s, made {_date(self.made)}, "
            f"used {_date(self.used)}>"
        )


def directory() -> str | None:
    """The folder's absolute path; None while the cache is off. ValueError for an address that is no folder.

    >>> xlamini.config.update("jax_compilation_cache_dir", None)
    >>> xlamini.cache.directory() is None
    True
    """
    return folder()


def stats() -> Stats:
    """What the cache did in this process: hits, misses, programs stored, files refused, bytes, seconds.

    `seconds_saved` is what the programs that were loaded had taken to compile, less the time to load them.

    >>> xlamini.cache.stats().refused
    0
    """
    return _disk.stats()


def entries(directory: Path | None = None) -> list[Entry]:
    """The programs in the folder, or in another one; those used last come first. What cannot be read is left out.

    >>> xlamini.cache.entries("/no/such/folder")
    []
    """
    found = [_entry(item) for item in _disk.files_in(_where("entries", directory))]
    return sorted((e for e in found if e is not None), key=lambda entry: -entry.used)


def clear(directory: Path | None = None) -> int:
    """Remove all programs from the folder, or from another one; how many there were. Other files stay.

    >>> xlamini.cache.clear("/no/such/folder")
    0
    """
    return _disk.clear(_where("clear", directory))


def explain(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> str:
    """Whether the program of a function for arguments of these types is in the folder; if not, why not.

    `fun` is jitted or not. It is traced, and neither compiled nor run. For a program that is not there, the entry most
    like it is compared part by part. Of a deep program, which runs in segments, it says how many of them are there.

    >>> xlamini.cache.explain(lambda x: x + 1, 2.0)
    'the cache is off: name a folder with config.update("jax_compilation_cache_dir", ...)'
    """
    if folder() is None:
        return f"the cache is off: {why_off()}"
    check_callable("explain", fun)
    function: Any = fun if isinstance(fun, Wrapped) else jit(fun)
    lowered = function.trace(*args, **kwargs).lower()
    program = lowered._program
    options = with_flags(program, lowered._ahead.options)
    called = _as_called(program)
    if called.in_segments:
        return _explain_segments(called, options)
    known = key_of(program, options)
    if known is None:
        return f"{program.name} calls Python functions, which other processes have not: such a program is never kept"
    everything = entries()
    found = _entry_of(known, everything)
    return _missed(program, known, everything) if found is None else f"{program.name} is in the cache: {found}"


def _as_called(program: CompileRequest) -> CompileRequest:
    """The program as a call lowers it, in segments if it is deep."""
    donated = [alias is not None for alias in program.aliases]
    return CompileRequest(program.pruned, program.name, program.device, donated, True, program.outlines, True)


def _explain_segments(program: CompileRequest, options: Options) -> str:
    everything = entries()
    known = [key_of(segment, options) for segment in lowered_segments(program).values()]
    found = [_entry_of(key, everything) for key in known if key is not None]
    there = [entry for entry in found if entry is not None]
    listed = "".join(f"\n  {entry}" for entry in there)
    python = f"; never kept, as they call Python functions: {count}" if (count := known.count(None)) else ""
    return f"{program.name} runs in segments: {len(there)} of {len(known)} are in the cache{python}{listed}"


def _entry_of(known: Key, everything: list[Entry]) -> Entry | None:
    here = _disk.path_of(known)
    return next((entry for entry in everything if entry.path == here and entry.parts == known.parts), None)


def _missed(program: CompileRequest, known: Key, others: list[Entry]) -> str:
    least = least_seconds()
    kept = f" (programs that compile in less than {least:g} s are not kept)" if least else ""
    if not others:
        return f"{known.name} is not in the cache, which is empty{kept}"
    described = about(program.pruned)
    nearest = min(others, key=lambda entry: _distance(entry, known, described))
    differences = "\n".join(f"  {line}" for line in _differences(nearest, known, described))
    return f"{known.name} is not in the cache{kept}; most like it is {nearest}, which differs in\n{differences}"


def _distance(entry: Entry, known: Key, described: dict[str, Any]) -> tuple:
    return (
        sum(entry.parts.get(name) != value for name, value in known.parts.items()),
        entry.name != known.name,
        entry.about["arguments"] != described["arguments"],
        sum(map(abs, _more(described, entry).values())),
    )


def _differences(entry: Entry, known: Key, described: dict[str, Any]) -> list[str]:
    found = []
    for name, value in known.parts.items():
        other = entry.parts.get(name)
        if name == "program" and other != value:
            found += _of_programs(entry, described)
        elif other != value and name != SKETCH:  # which differs with the program
            found.append(f"{name}: {value or 'none'}; there {other or 'none'}")
    return found


def _of_programs(entry: Entry, described: dict[str, Any]) -> list[str]:
    found = [
        f"the types of the {what}: {described[what]}; there {entry.about[what]}"
        for what in ("arguments", "results")
        if described[what] != entry.about[what]
    ]
    more = {name: count for name, count in _more(described, entry).items() if count}
    if more:
        found.append(f"equations: {', '.join(f'{count:+d} {name}' for name, count in sorted(more.items()))}")
    return found or ["equations: as many of each kind, but in another order or with other parameters"]


def _more(described: dict[str, Any], entry: Entry) -> Counter[str]:
    """How many more equations of each kind there are here than in an entry."""
    more = Counter(described["equations"])
    more.subtract(entry.about["equations"])
    return more


def _where(what: str, given: Path | None) -> str:
    if given is not None and not isinstance(given, str | os.PathLike):
        raise TypeError(f"{what}: directory must be a path, such as '/path/of/a/folder', got {given!r}")
    found = folder() if given is None else os.fspath(given)
    if found is None:
        raise ValueError(f"{what}: the cache is off; name a folder: {what}('/path/of/a/folder')")
    return found


def _entry(item: _disk.CacheFile) -> Entry | None:
    try:
        with open_regular(item.path) as file:
            header = read_header(file)
    except (OSError, Damaged):
        return None
    return Entry(
        header["name"],
        item.path,
        item.size,
        header["made"],
        item.last_used,
        header["seconds"],
        header["parts"],
        header["about"],
    )


def _size(count: int) -> str:
    return f"{count / 2**20:.2f} MB" if count >= 2**17 else f"{count / 2**10:.1f} kB"


def _date(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
