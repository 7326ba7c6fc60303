"""The flags of the compilation cache on disk, and the folder in which it is unless another one is named."""
from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Final

from xlamini.core.flags.config import Flag

_LEAST_SECONDS = 0.2
_MOST_BYTES = 2**30
_MOST_BYTES_NAMED = 2**32


def users_folder(environment: Mapping[str, str] = os.environ, system: str = sys.platform) -> str | None:
    """The folder of compiled programs among this user's caches, where the system has them; None for a homeless user."""
    if system == "win32":
        caches = environment.get("LOCALAPPDATA", "")
    elif system == "darwin":
        caches = os.path.expanduser("~/Library/Caches")
    else:
        named = environment.get("XDG_CACHE_HOME", "")
        caches = named if os.path.isabs(named) else os.path.expanduser("~/.cache")
    return os.path.join(caches, "xlamini", "programs") if os.path.isabs(caches) else None


compilation_cache_dir: Final = Flag(
    "compilation_cache_dir",
    users_folder(),
    "the folder where compiled programs are kept for later processes; None: nowhere",
    type=str,
    optional=True,
)
enable_compilation_cache: Final = Flag(
    "enable_compilation_cache", True, "use the folder that compilation_cache_dir names"
)
compilation_cache_max_size: Final = Flag(
    "compilation_cache_max_size",
    None,
    "bytes of programs to keep in the folder, -1 for any number; by default 1 GiB, in a folder that was named 4 GiB",
    type=int,
    optional=True,
)
persistent_cache_min_compile_time_secs: Final = Flag(
    "persistent_cache_min_compile_time_secs",
    None,
    "programs that compile faster are not kept in the folder; by default 0.2 s, in a folder that was named 0",
    type=float,
    optional=True,
)
persistent_cache_min_entry_size_bytes: Final = Flag(
    "persistent_cache_min_entry_size_bytes", 0, "programs whose files would be smaller are not kept in the folder"
)
compilation_cache_key: Final = Flag(
    "compilation_cache_key",
    "source",
    "the cache key of a program: 'source' is its equations and a digest of xlamini's own source, 'module' its "
    "StableHLO text",
    choices=("source", "module"),
)
compilation_cache_check_contents: Final = Flag(
    "compilation_cache_check_contents", False, "compile a program that is on disk too, and compare"
)
raise_persistent_cache_errors: Final = Flag(
    "raise_persistent_cache_errors", False, "raise what goes wrong with the folder instead of warning of it"
)


def programs_are_kept() -> bool:
    """Whether compiled programs are kept on disk."""
    return bool(compilation_cache_dir.value) and enable_compilation_cache.value


def programs_are_keyed_by_module() -> bool:
    """Whether the cache key is a program's StableHLO text, for which every program is lowered."""
    return compilation_cache_key.value == "module"


def folder_is_named() -> bool:
    """Whether somebody chose the folder. Who did not may not know of it: it stays small, and its failures silent."""
    return compilation_cache_dir.value != compilation_cache_dir.default


def least_seconds() -> float:
    """The seconds that a program takes to compile at least, if it is kept."""
    asked = persistent_cache_min_compile_time_secs.value
    return asked if asked is not None else 0.0 if folder_is_named() else _LEAST_SECONDS


def most_bytes() -> int:
    """The bytes that the programs of the folder have at most; -1 for any number."""
    asked = compilation_cache_max_size.value
    return asked if asked is not None else _MOST_BYTES_NAMED if folder_is_named() else _MOST_BYTES
