"""Python frames: which belong to the library, and which line of the user's program is running.

A `Source` is made once per (code object, instruction) of a trace, and shared. The line's text and the name of the
variable that it assigns are slow to read, so they are read from the code object on demand.
"""
from __future__ import annotations

import dis
import inspect
import linecache
import os
import sys
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

_PACKAGE = f"{Path(__file__).parents[2]}{os.sep}"


class _Files(dict[str, bool]):
    """For each file name whether it begins with one of `prefixes`; computed at the first look-up."""

    def __init__(self) -> None:
        self.prefixes: list[str] = [_PACKAGE]

    def __missing__(self, filename: str) -> bool:
        found = self[filename] = filename.startswith(tuple(self.prefixes))
        return found


own_files: Final = _Files()
"""The files of the library."""
hidden_files: Final = _Files()
"""The files whose lines are not the user's: those of the library, and those that `hide_file` was given."""


def hide_file(path: str) -> None:
    """Hide the frames of a file, or of the files in a folder, of a library on top of this one."""
    hidden_files.prefixes.append(path)
    hidden_files.clear()


def is_of_library(frame: FrameType) -> bool:
    """Whether a frame runs code of the library, or code generated in one of its modules (a dataclass's `__init__`)."""
    file = frame.f_code.co_filename
    return own_files[frame.f_globals.get("__file__", file) if file == "<string>" else file]


own_packages: Final = {__name__.partition(".")[0]}
"""The first parts of the names of the library's modules: its own name, and JAX's where it answers for JAX."""


def is_own_module(name: Any) -> bool:
    """Whether the name of a module, such as that of an object's class, is one of the library's."""
    return str(name).partition(".")[0] in own_packages


class Source:
    """A line of the user's program, as a code object and an instruction in it."""

    __slots__ = ("code", "instruction", "line")
    code: CodeType
    instruction: int
    line: int

    def __init__(self, code: CodeType, instruction: int, line: int):
        self.code, self.instruction, self.line = code, instruction, line

    @property
    def file(self) -> str:
        return self.code.co_filename

    @property
    def function(self) -> str:
        return self.code.co_qualname

    @property
    def text(self) -> str:
        return linecache.getline(self.file, self.line).strip()

    @property
    def target(self) -> str | None:
        """The variable that the line assigns the value to, if the next instruction stores it."""
        for instruction in dis.get_instructions(self.code):
            if instruction.offset > self.instruction and instruction.opname != "CACHE":
                stores = instruction.opname.startswith("STORE_") and isinstance(instruction.argval, str)
                return instruction.argval if stores else None
        return None

    def __str__(self) -> str:
        return f"{self.file}:{self.line} ({self.function})"


def is_hidden(frame: FrameType) -> bool:
    """Whether a frame is not the user's; the outermost one always is."""
    return hidden_files[frame.f_code.co_filename] and frame.f_back is not None


def is_own(fun: Any) -> bool:
    """Whether a function belongs to the library, and so does what it wraps: a user may replace the code of either."""
    innermost = getattr(inspect.unwrap(fun), "__code__", None)
    code: Any = getattr(fun, "__code__", innermost)
    return innermost is not None and own_files[innermost.co_filename] and own_files[code.co_filename]


def user_frame(depth: int = 1) -> FrameType | None:
    """The innermost user frame."""
    frame: FrameType | None = sys._getframe(depth)
    while frame is not None and hidden_files[frame.f_code.co_filename] and frame.f_back is not None:  # `is_hidden`
        frame = frame.f_back
    return frame


def user_line() -> str:
    """`file:line (function)` of the innermost user frame, for error messages."""
    frame = user_frame(2)
    if frame is None:
        return "unknown place"
    code = frame.f_code
    return f"{code.co_filename}:{frame.f_lineno} ({code.co_qualname})"


class _Warnings:
    """The number of warnings issued, by all threads."""

    count = 0


warnings_given: Final = _Warnings()


def is_inside(function: Any) -> bool:
    """Whether the user's line has called a function of the library, which has called our caller."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and own_files[frame.f_code.co_filename]:
        if frame.f_code is function.__code__:
            return True
        frame = frame.f_back
    return False


def user_stacklevel() -> int:
    """The `stacklevel` that makes `warnings.warn`, called by our caller, point at the user's line."""
    warnings_given.count += 1
    level, frame = 1, sys._getframe(1)
    while frame is not None and is_hidden(frame):
        level, frame = level + 1, frame.f_back
    return level


def definition(thing: Any) -> tuple[str, int]:
    """File and line where a class or function is written."""
    try:
        return inspect.getsourcefile(thing) or "?", inspect.getsourcelines(thing)[1]
    except (OSError, TypeError):
        return "?", 0
