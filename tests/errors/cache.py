"""The folder of compiled programs named wrongly, asked for while there is none, or out of order."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import xlamini
from tests.support.error_rows import ones, row, square
from xlamini import cache, config
from xlamini.core.flags.cache_flags import compilation_cache_dir, raise_persistent_cache_errors

ADDRESS = "gs://bucket/programs"


def kept_in(folder: str | None, program: Callable[[], Any]) -> Any:
    """Run a program while this folder is in use, and what goes wrong with it is an error."""
    with compilation_cache_dir(folder), raise_persistent_cache_errors(True):
        return program()


def run() -> Any:
    return xlamini.jit(lambda x: square(x) + 17)(ones(3))


ROWS = [
    row("an address", lambda: kept_in(ADDRESS, cache.directory), ValueError, "compilation_cache_dir must be a folder"),
    row("an address, in a run", lambda: kept_in(ADDRESS, run), ValueError, "must be a folder", "'gs://bucket/programs'"),
    row("a file", lambda: kept_in(__file__, run), RuntimeError, "compilation cache", "Not a directory"),
    row("a folder in a file", lambda: kept_in(f"{__file__}{os.sep}a", run), RuntimeError, "Not a directory"),
    row("entries of none", lambda: kept_in(None, cache.entries), ValueError, "the cache is off", "entries('/path"),
    row("clear none", lambda: kept_in(None, cache.clear), ValueError, "clear: the cache is off", "clear('/path"),
    row("entries of a number", lambda: cache.entries(3), TypeError, "entries: directory must be a path", "got 3"),  # type: ignore[arg-type]
    row("clear a list", lambda: cache.clear(["a"]), TypeError, "clear: directory must be a path"),  # type: ignore[arg-type]
    row("explain a value", lambda: kept_in("unused", lambda: cache.explain(3)), TypeError, "explain"),  # type: ignore[arg-type]
    row(
        "explain without arguments", lambda: kept_in("unused", lambda: cache.explain(square)), TypeError, "missing",
    ),
    row(
        "a path", lambda: config.update("jax_compilation_cache_dir", Path("programs")), TypeError,
        "flag compilation_cache_dir takes a value of type str or None", "Path('programs')",
    ),
    row(
        "a size with a unit", lambda: config.update("jax_compilation_cache_max_size", "1GB"), TypeError, "of type int",
        "'1GB'",
    ),
    row(
        "seconds as text", lambda: config.update("jax_persistent_cache_min_compile_time_secs", "1"), TypeError,
        "of type float", "'1'",
    ),
    row(
        "a name that is near", lambda: config.update("jax_compilation_cache_directory", "a"), AttributeError,
        "did you mean compilation_cache_dir",
    ),
]
