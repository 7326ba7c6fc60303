"""The folder of compiled programs: where it is, and whether it may be used.

What is loaded from it is executed. A folder that somebody named is theirs to answer for, and only its files are
checked; the one that is used unasked must be the user's own: no other user may write to it, nor have made it.
"""
from __future__ import annotations

import os
import stat

from xlamini.core.flags import cache_flags


def folder() -> str | None:
    """The absolute path of the cache folder; None while the cache is off, and if the folder may not be used."""
    if not cache_flags.programs_are_kept():
        return None
    named = cache_flags.compilation_cache_dir.value
    if "://" in named:
        raise ValueError(f"compilation_cache_dir must be a folder that this machine's system can open, got {named!r}")
    where = os.path.abspath(os.path.expanduser(named))
    return where if cache_flags.folder_is_named() or _refusal(where) is None else None


def why_off() -> str:
    """Why there is no folder, with one fix, for a report."""
    if not cache_flags.enable_compilation_cache.value:
        return "flag enable_compilation_cache is off"
    refused = _refusal(cache_flags.compilation_cache_dir.value) if cache_flags.programs_are_kept() else None
    reason = f"{refused}; " if refused else ""
    return f'{reason}name a folder with config.update("jax_compilation_cache_dir", ...)'


def _refusal(where: str) -> str | None:
    """Why a folder that nobody named is not used: who else may write to it, or to where it would be made."""
    if not hasattr(os, "geteuid"):
        return None  # users have no numbers, and the folder is in the user's profile
    try:
        status = os.lstat(where)
    except OSError:
        return _refusal_to_make(where)
    if not stat.S_ISDIR(status.st_mode):
        return f"{where} is no folder"
    if status.st_uid != os.geteuid():
        return f"{where} belongs to another user (number {status.st_uid})"
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        return f"other users may write to {where} (chmod go-w makes it yours alone)"
    return None


def _refusal_to_make(where: str) -> str | None:
    """As root with another user's home, it would be a folder that this user could not use."""
    above = os.path.dirname(where)
    while not os.path.exists(above) and above != os.path.dirname(above):
        above = os.path.dirname(above)
    try:
        owner = os.stat(above).st_uid
    except OSError:
        return f"{above} cannot be read"
    return None if owner in (0, os.geteuid()) else f"{above} belongs to another user (number {owner})"
