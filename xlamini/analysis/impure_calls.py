"""The built-in functions whose results or effects a traced program does not have."""
from __future__ import annotations

import builtins
import datetime
import random
import time
from typing import Any, NamedTuple

import numpy as np


class ImpureCall(NamedTuple):
    """The kind of a call, its name, and what to do instead."""

    kind: str
    name: str
    fix: str


_ONCE = "A traced function runs once"
_FIXES = {
    "random numbers": f"{_ONCE}, so the numbers become constants: pass a key, and use xlamini.random.",
    "a clock": f"{_ONCE}, so the time becomes a constant, that of the trace: measure outside of the function.",
    "output": f"{_ONCE}, so this is printed once, when it is traced: use xlamini.debug.print.",
    "input": f"{_ONCE}, so it asks once: ask outside, and pass the answer as an argument.",
    "a file": f"{_ONCE}, so the file is read or written once: do it outside, or by xlamini.io_callback.",
}
NUMPY_RANDOM = ImpureCall("random numbers", "numpy.random", _FIXES["random numbers"])
_CLOCKS = frozenset(name for name in dir(time) if name.endswith(("time", "monotonic", "counter", "_ns")))


def impurity_of(called: Any) -> ImpureCall | None:
    """What is impure about a call of this built-in function; None if nothing is."""
    kind = _kind(called)
    return None if kind is None else ImpureCall(kind, _name(called), _FIXES[kind])


def _kind(called: Any) -> str | None:
    owner, name = getattr(called, "__self__", None), getattr(called, "__name__", "")
    if isinstance(owner, random.Random | np.random.RandomState | np.random.Generator):
        return "random numbers"
    if owner is time and name in _CLOCKS:
        return "a clock"
    if isinstance(owner, type) and issubclass(owner, datetime.date) and name in ("now", "utcnow", "today"):
        return "a clock"
    return _BUILTINS.get(name) if owner is builtins or getattr(owner, "__name__", "") in ("_io", "io") else None


_BUILTINS = {"print": "output", "input": "input", "open": "a file"}


def _name(called: Any) -> str:
    owner = getattr(called, "__self__", None)
    module = getattr(owner, "__name__", None) or type(owner).__name__
    return f"{called.__name__}()" if owner is builtins else f"{module}.{called.__name__}()"
