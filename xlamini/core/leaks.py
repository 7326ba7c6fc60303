"""Leaked tracers: under flag `check_tracer_leaks` a tracer that outlives its trace is an error when the trace ends."""
from __future__ import annotations

import gc
import sys
from types import CellType, FrameType, FunctionType, ModuleType
from typing import Any

from xlamini.core.errors import UnexpectedTracerError
from xlamini.core.frames import is_hidden
from xlamini.core.tracer import Builder, Tracer, origin_of

_LISTED, _DEPTH = 3, 6
_GENERATIONS = (1, 2)  # the young objects first: a full collection of a large heap takes seconds


def refuse_leaks(builder: Builder) -> None:
    """UnexpectedTracerError if the user's program still refers to a tracer of a finished trace."""
    for generation in _GENERATIONS:
        if not _tracers_of(builder):
            return
        gc.collect(generation)
    alive, variables = _tracers_of(builder), _variables()
    leaks = [(x, place) for x in alive if (place := _place(x, variables, {id(alive)}, _DEPTH))]
    if not leaks:
        return
    lines = "\n".join(f"  {x!r}, made {origin_of(x)}, is in {place}" for x, place in leaks[:_LISTED])
    raise UnexpectedTracerError(
        f"Leaked tracers: {len(leaks)} of {builder.name or 'a function'} are referenced after its trace has ended:\n"
        f"{lines}\nA traced value must not be kept in a global, an attribute or a closure: return it from the traced "
        "function instead."
    )


def _tracers_of(builder: Builder) -> list[Tracer]:
    return [x for x in gc.get_objects() if type(x) is Tracer and x.builder is builder]


def _place(x: Any, variables: dict[int, str], seen: set[int], depth: int) -> str | None:
    """Where the user's program refers to an object, in words; None if only the library and `seen` objects do.

    A function or an object of the user's that the library holds, such as a rule, is no leak of what it closes over.
    """
    if id(x) in variables:
        return variables[id(x)]
    owners = [o for o in gc.get_referrers(x) if id(o) not in seen and not isinstance(o, FrameType) and not _is_own(o)]
    seen.update(map(id, [owners, *owners]))
    roots = (_step(o, x) for o in owners if isinstance(o, ModuleType | type))
    root = next(roots, None)
    if root is not None or not depth:
        return root
    for owner in owners:
        further = _place(owner, variables, seen, depth - 1)
        if further is not None:
            return f"{_step(owner, x)} in {further}"
    return None


def _variables() -> dict[int, str]:
    """The user's local variables in this thread, by the id of their value; the collector does not know them."""
    found: dict[int, str] = {}
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if not is_hidden(frame):
            function = frame.f_code.co_qualname
            found.update({id(value): f"the variable {name!r} of {function}" for name, value in frame.f_locals.items()})
        frame = frame.f_back
    return found


def _is_own(x: Any) -> bool:
    """Whether an object belongs to the library: one of its modules or functions, or of a class of its own."""
    if isinstance(x, ModuleType):
        name = x.__name__
    else:
        name = x.__module__ if isinstance(x, FunctionType | type) else type(x).__module__
    return str(name).partition(".")[0] == __name__.partition(".")[0]


def _step(owner: Any, x: Any) -> str:
    """What refers to an object, in words."""
    if isinstance(owner, dict):
        return f"the entry {_key_of(owner, x)!r}"
    if isinstance(owner, CellType):
        return "a variable of a closure"
    if isinstance(owner, ModuleType):
        return f"module {owner.__name__}"
    if isinstance(owner, type):
        return f"class {owner.__qualname__}"
    if isinstance(owner, FunctionType):
        return f"function {owner.__qualname__}"
    name = _key_of(getattr(owner, "__dict__", {}), x)
    return f"a {type(owner).__name__}" if name is None else f"the attribute {name!r} of a {type(owner).__name__}"


def _key_of(table: dict[Any, Any], x: Any) -> Any:
    return next((key for key, value in list(table.items()) if value is x), None)
