"""The source files of a program, for the screen that shows the user's lines."""
from __future__ import annotations

import linecache
from typing import Any

from xlamini.core.frames import own_files

_INSTALLED = ("site-packages", "dist-packages", "/lib/python")


def sources_of(files: list[str], with_text: bool) -> list[dict[str, Any]]:
    """Each file with its lines, or without where they are not wanted or cannot be read."""
    return [{"file": f, "lines": _lines(f) if with_text else None, "library": _is_library(f)} for f in files]


def _lines(file: str) -> list[str] | None:
    lines = linecache.getlines(file)
    return [line.rstrip("\n") for line in lines] or None


def _is_library(file: str) -> bool:
    return own_files[file] or any(folder in file for folder in _INSTALLED)
