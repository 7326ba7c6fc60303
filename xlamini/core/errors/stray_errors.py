"""Errors of Python itself inside the library: `'int' object is not iterable`, from a line that the user did not write.

A check of an argument raises an error that names the argument. Where a check is missing, Python raises its own error
somewhere inside, or NumPy does. It gets the name of the public function in front, and the arguments that are no arrays
behind. A check that serves many functions does not know which one was called: its error gets the name alone.
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

import numpy as np

from xlamini.core.dtypes.scalar_constructors import ScalarConstructor
from xlamini.core.errors import ShapeError, TypePromotionError
from xlamini.core.errors.frames import is_of_library, own_files
from xlamini.core.errors.other_names import KEYWORDS
from xlamini.core.flags.environment_variables import near

_KINDS = (TypeError, ValueError, AttributeError, OverflowError, ZeroDivisionError, IndexError, KeyError)
_OF_CHECKS = (TypeError, ValueError, OverflowError, RecursionError, TypePromotionError, ShapeError)
_NAMED = re.compile(r"(argument '[^']*' of )?[\w.]+: ")
_METHODS = ("init", "reflected", "call", "getitem", "setitem")
"""Methods of Python's, whose names a user has not written."""
_NUMPY = str(Path(np.__file__).parent)
_RAISES = {dis.opmap["RAISE_VARARGS"], dis.opmap["RERAISE"]}
_WRONG_KEYWORD = re.compile(
    r"(?P<text>(.*\.)?(?P<function>\w+)\(\) got an unexpected keyword argument '(?P<name>\w+)')(\. Did you mean .*)?"
)
"""Python 3.13 adds a guess of its own, which does not know other libraries' names."""
_WRONG_CALL = re.compile(r"\(\) (missing|takes|got)")
_OF_NUMBERS = str(Path(__file__).parents[1] / "dtypes")
"""Where errors are raised of what is no number, or does not fit: whoever calls knows no function's name."""
_short = reprlib.Repr()
_short.maxstring, _short.maxother = 40, 60
_ENDLESS = "maximum recursion depth exceeded"
_LONGEST, _FIRST, _LAST = 1000, 500, 300
"""A text that shows a long argument keeps its beginning and its end."""
_NO_END = "an argument contains itself, or is nested more deeply than Python's stack allows"
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
    _explain_keyword(error, entries)
    while entries and entries[-1].tb_frame.f_code.co_filename.startswith(_NUMPY):
        entries.pop()
    _shorten(error, entries)
    lacks = vars(error)["_lacks"] if "_lacks" in vars(error) else _lacking(error, entries)
    call = _call(_edge(entries)) if lacks and entries and not _is_called_by_library(_edge(entries)) else None
    error._is_named, error._lacks = not lacks or call is not None, lacks  # type: ignore[attr-defined]
    if call is not None and not _names(error.args[0], call[0]):
        name, given = call
        if lacks == "call" and given:
            error.args = (f"{name}: {error.args[0]}; it was given {given}",)
        elif lacks == "call" or name not in (*re.findall(r"\w+", error.args[0]), *_METHODS):
            error.args = (f"{name}: {error.args[0]}",)


def _explain_keyword(error: BaseException, entries: list[TracebackType]) -> None:
    """Say which argument may be meant by one that the function lacks."""
    wrong = _WRONG_KEYWORD.fullmatch(error.args[0])
    fun = _named(wrong["function"], entries[-1].tb_frame) if wrong and entries else None
    if wrong is None or fun is None:
        return
    names = [*inspect.signature(fun).parameters]
    meant = [name for name in KEYWORDS.get(wrong["name"], "").split() if name in names]
    advice = f"; did you mean {meant[0]}?" if meant else near(wrong["name"], names)
    error.args = (wrong["text"] + advice,) if advice else error.args


def _named(name: str, frame: FrameType) -> Any:
    """The function of this name that a frame calls."""
    values = [frame.f_globals.get("fun"), *frame.f_locals.values()] if is_of_library(frame) else []
    return next((x for x in values if inspect.isfunction(x) and x.__name__ == name), None)


def _shorten(error: BaseException, entries: list[TracebackType]) -> None:
    text = error.args[0]
    if len(text) > _LONGEST and "\n" not in text and entries and is_of_library(entries[-1].tb_frame):
        error.args = (f"{text[:_FIRST]} ... {text[-_LAST:]}",)


def _lacking(error: BaseException, entries: list[TracebackType]) -> str:
    """What the error's text lacks: "call", "name" of the function, or "" where nothing is missing."""
    text = error.args[0]
    if type(error) is RecursionError and text.startswith(_ENDLESS) and "cyclical" not in text:
        calls_user = not all(_is_inside(entry.tb_frame) for entry in entries)
        error.args = (f"{text}; {_LOOPS}" if calls_user else _NO_END,)
        return "" if calls_user else "name"
    if not entries or not is_of_library(entries[-1].tb_frame) or _WRONG_CALL.search(text):
        return ""
    of_numbers = entries[-1].tb_frame.f_code.co_filename.startswith(_OF_NUMBERS)
    if type(error) in _KINDS and (of_numbers or _is_stray(entries[-1])):
        return "call"
    return "name" if type(error) in _OF_CHECKS and not _NAMED.match(text) else ""


def _names(text: str, name: str) -> bool:
    """Whether who raised an error knew the function: `zeros: ...`, `argument 'x' of sin: ...`."""
    return f" {text}".partition(": ")[0].endswith(f" {name}")


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_stray(entry: TracebackType) -> bool:
    """Whether no `raise` of the frame raised the error."""
    return entry.tb_frame.f_code.co_code[entry.tb_lasti] not in _RAISES


def _edge(entries: list[TracebackType]) -> FrameType:
    """The first frame of the library after the user's last one."""
    first = len(entries)
    while first and _is_inside(entries[first - 1].tb_frame):
        first -= 1
    return entries[min(first, len(entries) - 1)].tb_frame


def _is_inside(frame: FrameType) -> bool:
    """Whether a frame is the library's, or of what it calls in Python's frozen modules."""
    return is_of_library(frame) or frame.f_code.co_filename.startswith("<frozen")


def _is_called_by_library(edge: FrameType) -> bool:
    return edge.f_back is not None and is_of_library(edge.f_back)


def _call(edge: FrameType) -> tuple[str, str] | None:
    """The public function's name, and its arguments that are no arrays; None for a frame of another kind."""
    values = edge.f_locals
    owner = values.get("self")
    fun = values.get("fun") or edge.f_globals.get("fun")  # an edge without free variables has it among its globals
    if "operands" in values and isinstance(name := getattr(owner, "__name__", getattr(owner, "name", None)), str):
        return name.strip("_"), _shown((f"operand {i}", x) for i, x in enumerate(values["operands"]))
    if isinstance(owner, ScalarConstructor):
        return owner.__name__, _shown([("x", values["x"])])
    if "other" in values and isinstance(values.get("name"), str):  # of an operator
        return values["name"], _shown([("the other operand", values["other"])])
    if not inspect.isfunction(fun) or not own_files[fun.__code__.co_filename] or fun.__name__.startswith("<"):
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
