"""Flattening by jaxlib's C++, after which as much of Python's recursion limit is left as before, an exception or not.

jaxlib's C++ takes a level for each node that it flattens, and does not give back those that it holds when Python code
that it calls raises: a predicate `is_leaf`, a class's own flattening, a comparison of keys. After some such errors no
level would be left, and nothing would run. So the interpreter's count is read before, and what lacks after an exception
is given back.

C++ dispatch flattens arguments before any Python code of this library runs. Where a Python function calls it, the
failed flattening is repeated to learn what it cost. Where the user does, what dict keys without an order cost, or
dataclasses without a field, stays lost, until few levels are left and the count is compared with the frames.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from xlamini.core.pytree.nodes import PyTreeDef, default_registry, dispatch_registry

R = TypeVar("R")

_NO_END = "the pytree contains itself, or is nested more deeply than Python's stack allows"
_BYTES = 256
"""The count is among the first members of the interpreter's state of a thread."""


def _take_and_give() -> tuple[Callable[..., int], Callable[[], None]] | None:
    """The interpreter's functions that take a level and give it back; None if it has none of that name."""
    try:
        take, give = ctypes.pythonapi.Py_EnterRecursiveCall, ctypes.pythonapi.Py_LeaveRecursiveCall
    except (AttributeError, OSError):
        return None
    take.argtypes, take.restype, give.argtypes, give.restype = [ctypes.c_char_p], ctypes.c_int, [], None
    return take, give


def _state() -> int:
    get = ctypes.pythonapi.PyThreadState_Get
    get.argtypes, get.restype = [], ctypes.c_void_p
    return get()


def _offset() -> int | None:
    """Where the count of levels left is in the state of a thread: what is one less while a level is taken."""
    functions = _take_and_give()
    if functions is None:
        return None
    take, give = functions
    members = (ctypes.c_int * (_BYTES // 4)).from_address(_state())
    before = list(members)
    take(b"")
    during = list(members)
    give()
    changed = [i for i, (a, b) in enumerate(zip(before, during, strict=True)) if a != b]
    return 4 * changed[0] if len(changed) == 1 and before[changed[0]] - during[changed[0]] == 1 else None


_place = _offset()


class _ThreadDepth(threading.local):
    """The count of the thread; where the interpreter has none, as it looks at the stack itself, one that is full."""

    def __init__(self) -> None:
        self.left = ctypes.c_int(_NONE_LOST) if _place is None else ctypes.c_int.from_address(_state() + _place)


_FEW = 300
_NONE_LOST = 1 << 20
_thread = _ThreadDepth()


def find_lost_levels() -> None:
    """Give levels back, if few are left and the frames of the stack do not explain where the others are.

    A frame takes one, and what calls it from C rarely more than one besides.
    """
    left = _thread.left
    if left.value >= _FEW:
        return
    frames, frame = 0, sys._getframe()
    while frame is not None:
        frames, frame = frames + 1, frame.f_back
    if sys.getrecursionlimit() - left.value > 2 * frames + 100:
        left.value = sys.getrecursionlimit() - frames


def return_levels(error: Exception, trees: Iterable[Any]) -> None:
    """Give back what C++ dispatch lost, if its error is that it could not flatten one of its arguments, `trees`."""
    left = _thread.left
    for tree in trees:
        before = left.value
        try:
            dispatch_registry.flatten(tree)
        except Exception as again:
            is_same = type(again) is type(error) and str(again) == str(error)
            left.value = before + (before - left.value) * is_same
            return


def _keeping_levels(fun: Callable[..., R]) -> Callable[..., R]:
    """`fun(x, y=None)`, a function of jaxlib's C++ that flattens, so that no level is lost if it raises."""

    def flat(x: Any, y: Any = None) -> R:
        left = _thread.left
        before = left.value
        if before < _FEW:
            find_lost_levels()
            before = left.value
        try:
            return fun(x, y)
        except BaseException as error:
            left.value = before
            if isinstance(error, SystemError | RecursionError):  # C++ met the end of the stack
                raise RecursionError(_NO_END) from None
            raise

    return flat


flatten: Callable[..., tuple[list[Any], PyTreeDef]] = _keeping_levels(default_registry.flatten)
"""`flatten(tree, is_leaf=None)`, positional: the leaves and the treedef."""

flatten_with_path: Callable[..., tuple[list[Any], PyTreeDef]] = _keeping_levels(default_registry.flatten_with_path)
"""The same with the path of each leaf, which `is_leaf` gets, too."""

flatten_up_to: Callable[[PyTreeDef, Any], list[Any]] = _keeping_levels(PyTreeDef.flatten_up_to)
"""`flatten_up_to(treedef, tree)`: the subtrees of a tree at the leaves of the treedef."""
