"""Whose operands are they: the strict modes of promotion are about those that the user gives, not about ours.

The functions of the library combine values of any ranks and dtypes. So where a combination breaks a rule that the user
set, the stack says which of the operands are arguments of the user's own call. Nothing is noted before, so that calls
cost nothing more; a function of the user's that the library calls makes calls of its own.
"""
from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from types import CodeType, FrameType
from typing import Any, TypeVar

from xlamini.core.errors.frames import is_of_library
from xlamini.core.pytree import tree_leaves

F = TypeVar("F", bound=Callable[..., Any])

_entrances: set[CodeType] = set()
_trials: set[CodeType] = set()


def is_entrance(fun: F) -> F:
    """Decorator for a function whose arguments are those of a call that is compiled by itself, whoever makes it."""
    _entrances.add(fun.__code__)  # type: ignore[attr-defined]
    return fun


def is_trial(fun: F) -> F:
    """Decorator for a function that traces a call apart from its operands, and makes it in place after an error."""
    _trials.add(fun.__code__)  # type: ignore[attr-defined]
    return fun


def user_operands(operands: Sequence[Any]) -> list[Any]:
    """The operands that are arguments of the user's call; all of them where that cannot be told yet."""
    arguments = _users_arguments()
    if arguments is None:
        return list(operands)
    given = set(map(id, arguments))
    return [x for x in operands if id(x) in given]


def user_mixes_dtypes(operands: Sequence[Any]) -> bool:
    """Whether the user's call mixes the dtypes of operands: one is an argument, or the arguments have all dtypes."""
    arguments = _users_arguments()
    if arguments is None:
        return True
    given = set(map(id, arguments))
    dtypes = {x.dtype for x in arguments if hasattr(x, "dtype")}
    return any(id(x) in given for x in operands) or all(getattr(x, "dtype", None) in dtypes for x in operands)


def _users_arguments() -> list[Any] | None:
    """The arguments of the call that the user made, and their leaves; None within a trial."""
    frame = sys._getframe(2)
    edge: FrameType = frame
    while frame.f_back is not None and frame.f_code not in _entrances and is_of_library(frame):
        if frame.f_code in _trials:
            return None
        edge, frame = frame, frame.f_back
    names, varargs, keywords, values = inspect.getargvalues(frame if frame.f_code in _entrances else edge)
    every = [values.get(name) for name in (*names, varargs, keywords) if name is not None]
    return [*every, *tree_leaves(every)]
