"""Errors of Python itself inside the library: `'int' object is not iterable`, from a line that the user did not write.

A check of an argument raises an error that names the argument. Where a check is missing, Python raises its own error
somewhere inside. It gets the name of the public function in front, and the arguments that are no arrays behind.
"""

from __future__ import annotations

import dis
import inspect
import re
import reprlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

from xlamini.core.frames import is_of_library, own_files

_KINDS = (TypeError, ValueError, AttributeError, OverflowError, ZeroDivisionError, IndexError)
_RAISES = {dis.opmap["RAISE_VARARGS"], dis.opmap["RERAISE"]}
_WRONG_CALL = re.compile(r"\(\) (missing|takes|got)")
_OF_NUMBERS = str(Path(__file__).parent / "dtypes")
"""Where errors are raised of what is no number, or does not fit: whoever calls knows no function's name."""
_short = reprlib.Repr()
_short.maxstring, _short.maxother = 40, 60
_ENDLESS = "maximum recursion depth exceeded"
_LOOPS = (
    "a traced function that calls itself must end by values known while tracing; for a loop over traced values use "
    "lax.while_loop"
)


def name_the_call(error: BaseException) -> None:
    """Add the public function and its arguments to an error that Python raised in a line of the library.

    An error that leaves several functions of the library is looked at when it leaves the first, before its traceback is
    cut. If that is none that the user called, such as one that C++ calls, the next one names the call.
    """
    if len(error.args) != 1 or not isinstance(error.args[0], str) or vars(error).get("_is_named"):
        return
    entries = list(_entries(error.__traceback__))
    is_new = not hasattr(error, "_is_named")
    named = not is_new or _needs_a_name(error, entries)
    call = _call(_edge(entries)) if named and entries else None
    error._is_named = not named or call is not None  # type: ignore[attr-defined]
    if call is not None and not _names(error.args[0], call[0]):
        name, given = call
        error.args = (f"{name}: {error.args[0]}{f'; it was given {given}' if given else ''}",)


def _needs_a_name(error: BaseException, entries: list[TracebackType]) -> bool:
    if type(error) is RecursionError and error.args[0].startswith(_ENDLESS) and "cyclical" not in error.args[0]:
        error.args = (f"{error.args[0]}; {_LOOPS}",)
    if type(error) not in _KINDS or not entries or _WRONG_CALL.search(error.args[0]):
        return False
    return _is_stray(entries[-1]) or entries[-1].tb_frame.f_code.co_filename.startswith(_OF_NUMBERS)


def _names(text: str, name: str) -> bool:
    """Whether who raised an error knew the function: `zeros: ...`, `argument 'x' of sin: ...`."""
    return f" {text}".partition(": ")[0].endswith(f" {name}")


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_stray(entry: TracebackType) -> bool:
    """Whether the last frame is the library's, and no `raise` of it raised the error."""
    return is_of_library(entry.tb_frame) and entry.tb_frame.f_code.co_code[entry.tb_lasti] not in _RAISES


def _edge(entries: list[TracebackType]) -> FrameType:
    """The first frame of the library after the user's last one."""
    first = len(entries)
    while first and is_of_library(entries[first - 1].tb_frame):
        first -= 1
    return entries[min(first, len(entries) - 1)].tb_frame


def _call(edge: FrameType) -> tuple[str, str] | None:
    """The public function's name, and its arguments that are no arrays; None for a frame of another kind."""
    values = edge.f_locals
    owner = values.get("self")
    fun = values.get("fun") or edge.f_globals.get("fun")  # an edge without free variables has it among its globals
    if "operands" in values and isinstance(name := getattr(owner, "__name__", getattr(owner, "name", None)), str):
        return name.strip("_"), _shown((f"operand {i}", x) for i, x in enumerate(values["operands"]))
    if "other" in values and isinstance(values.get("name"), str):  # of an operator
        return values["name"], _shown([("the other operand", values["other"])])
    if not inspect.isfunction(fun) or not own_files[fun.__code__.co_filename]:
        return None
    try:
        arguments = inspect.signature(fun).bind(*values["args"], **values["kwargs"]).arguments
    except (KeyError, TypeError):
        return None
    return fun.__name__.strip("_"), _shown(arguments.items())


def _shown(arguments: Iterable[tuple[Any, Any]]) -> str:
    return ", ".join(f"{n}={_brief(v)}" for n, v in arguments if n != "self" and not hasattr(v, "dtype"))


def _brief(x: Any) -> str:
    if callable(x):
        return getattr(x, "__name__", type(x).__name__)
    return _short.repr(x)
