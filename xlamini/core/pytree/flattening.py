"""Flattening by jaxlib's C++, after which as much of Python's recursion limit is left as before, an exception or not.

jaxlib's C++ takes a level for each node that it flattens, and does not give back those that it holds when Python code
that it calls raises: a predicate `is_leaf`, a class's own flattening, a comparison of keys. After some such errors no
level would be left, and nothing would run. So the interpreter's count is read before, and what lacks after an exception
is given back.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from xlamini.core.pytree.nodes import PyTreeDef, default_registry

R = TypeVar("R")

_NO_END = "the pytree contains itself, or is nested more deeply than Python's stack allows"
_BYTES = 256
"""The count is among the first members of the interpreter's state of a thread."""


class _NoCount:
    """Where the interpreter does not count, because it looks at the stack itself."""

    value = 0


def _take_and_give() -> tuple[Callable[..., int], Callable[[], None]] | None:
    """The interpreter's functions that take a level and give it back; None if it has none of that name."""
    try:
        take, give = ctypes.pythonapi.Py_EnterRecursiveCall, ctypes.pythonapi.Py_LeaveRecursiveCall
    except (AttributeError, OSError):
        return None
    take.argtypes, take.restype, give.argtypes, give.restype = [ctypes.c_char_p], ctypes.c_int, [], None
    return take, give


_functions = _take_and_give()


def _state() -> int:
    get = ctypes.pythonapi.PyThreadState_Get
    get.argtypes, get.restype = [], ctypes.c_void_p
    return get()


def _offset() -> int | None:
    """Where the count of levels left is in the state of a thread: what is one less while a level is taken."""
    if _functions is None:
        return None
    take, give = _functions
    members = (ctypes.c_int * (_BYTES // 4)).from_address(_state())
    before = list(members)
    take(b"")
    during = list(members)
    give()
    changed = [i for i, (a, b) in enumerate(zip(before, during, strict=True)) if a != b]
    return 4 * changed[0] if len(changed) == 1 and before[changed[0]] - during[changed[0]] == 1 else None


_place = _offset()


class _Thread(threading.local):
    """The count of the thread."""

    def __init__(self) -> None:
        self.left: Any = _NoCount if _place is None else ctypes.c_int.from_address(_state() + _place)


_thread = _Thread()


def _keeping_levels(fun: Callable[[Any, Any], R]) -> Callable[..., R]:
    """`fun(tree, is_leaf)`, a function of jaxlib's C++ that flattens, so that no level is lost if it raises."""

    def flat(tree: Any, is_leaf: Any = None) -> R:
        count = _thread.left
        before = count.value
        try:
            return fun(tree, is_leaf)
        except BaseException as error:
            for _ in range(before - count.value):
                _functions[1]()  # type: ignore[index]
            if isinstance(error, SystemError):  # C++ met the end of the stack
                raise RecursionError(_NO_END) from None
            raise

    return flat


flatten: Callable[..., tuple[list[Any], PyTreeDef]] = _keeping_levels(default_registry.flatten)
"""`flatten(tree, is_leaf=None)`, positional: the leaves and the treedef."""

flatten_with_path: Callable[..., tuple[list[Any], PyTreeDef]] = _keeping_levels(default_registry.flatten_with_path)
"""The same with the path of each leaf, which `is_leaf` gets, too."""
