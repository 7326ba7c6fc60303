"""The depth of nested traces: room on Python's stack for it, and an error where it has no end.

Tracing a jitted function inside another takes some ten frames, and walks over the nested jaxprs take as many, so
Python's limit of 1,000 frames would allow a nest of 90. The limit grows with the depth and is never lowered, because it
is one for all threads.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path
from types import FrameType

DEEPEST = 550
_FRAMES = 25
"""The frames that one level may take, on top of those that Python allows anyway.

At the deepest level the limit is 14,750. C code that Python's limit stops, as jaxlib's walk over a container that holds
itself, overflows a stack of 8 MB between 20,000 and 26,000.
"""


def make_room(depth: int, name: str) -> None:
    """Raise Python's recursion limit for traces nested `depth` deep; beyond `DEEPEST` RecursionError, with the name."""
    if depth > DEEPEST:
        raise RecursionError(
            f"{name or 'a function'} is traced inside {depth} others: one that calls itself is traced without end, for "
            "both sides of a condition on traced values are traced; write lax.while_loop, or make the argument "
            "that ends the recursion static"
        )
    needed = 1000 + depth * _FRAMES
    if sys.getrecursionlimit() < needed:
        sys.setrecursionlimit(needed)


_TREES = str(Path(__file__).parent / "pytree")
_LEAKS = sys.version_info < (3, 12)
leave, _enter = ctypes.pythonapi.Py_LeaveRecursiveCall, ctypes.pythonapi.Py_EnterRecursiveCall
SPARE = range(20 if _LEAKS else 0)
"""Calls of `leave` that a handler of a RecursionError makes before any other, which might have no room."""


def restore_depth(error: BaseException) -> None:
    """Give back what an error that left jaxlib's flatten has taken from the depth of Python's stack.

    In CPython 3.11 that flatten counts a level for each container, and does not count down when an error leaves it. So
    each error would leave less of the stack to the thread, until every call is a RecursionError.
    """
    if not _LEAKS or not (isinstance(error, RecursionError) or _left_a_tree(error)):
        return
    taken = sys.getrecursionlimit() - _room() - _frames()
    for _ in range(abs(taken)):
        leave() if taken > 0 else _enter(b"")


def _left_a_tree(error: BaseException) -> bool:
    traceback = error.__traceback__
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename.startswith(_TREES):
            return True
        traceback = traceback.tb_next
    return False


def _room(depth: int = 0) -> int:
    """How many more calls fit on the stack."""
    try:
        return _room(depth + 1)
    except RecursionError:
        return depth


def _frames() -> int:
    frame: FrameType | None = sys._getframe()
    count = 0
    while frame is not None:
        frame, count = frame.f_back, count + 1
    return count
