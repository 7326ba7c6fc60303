"""Leaked tracers: under flag `check_tracer_leaks` a tracer that outlives its trace is an error when the trace ends."""
from __future__ import annotations

import gc
from types import CellType, FrameType, FunctionType, ModuleType
from typing import Any

from xlamini.core.errors import UnexpectedTracerError
from xlamini.core.tracer import Builder, Tracer, origin_of

_LISTED, _DEPTH = 3, 6
_CONTAINERS = (dict, list, tuple, set, frozenset, CellType)


def refuse_leaks(builder: Builder) -> None:
    """UnexpectedTracerError if the user's program still refers to a tracer of a finished trace."""
    gc.collect()
    alive = [x for x in gc.get_objects() if type(x) is Tracer and x.builder is builder]
    leaks = [(x, place) for x in alive if (place := _place(x, {id(alive)}, _DEPTH))]
    if not leaks:
        return
    lines = "\n".join(f"  {x!r}, made {origin_of(x)}, is in {place}" for x, place in leaks[:_LISTED])
    raise UnexpectedTracerError(
        f"Leaked tracers: {len(leaks)} of {builder.name or 'a function'} are referenced after its trace has ended:\n"
        f"{lines}\nA traced value must not be kept in a global, an attribute or a closure: return it from the traced "
        "function instead."
    )


def _place(x: Any, seen: set[int], depth: int) -> str | None:
    """Where the user's program refers to an object, in words; None if only the library and `seen` objects do."""
    owners = [o for o in gc.get_referrers(x) if not isinstance(o, FrameType) and id(o) not in seen]
    seen.update(map(id, [owners, *owners]))
    for owner in owners:
        if _is_own(owner):
            continue
        step = _step(owner, x)
        if not isinstance(owner, _CONTAINERS) or not depth:
            return step
        if not _is_referenced(owner, seen):
            return f"{step} in a local variable"
        further = _place(owner, seen, depth - 1)
        if further is not None:
            return f"{step} in {further}"
    return None


def _is_referenced(x: Any, seen: set[int]) -> bool:
    """Whether anything but a running function refers to an object."""
    return any(not isinstance(o, FrameType) and id(o) not in seen for o in gc.get_referrers(x))


def _is_own(x: Any) -> bool:
    """Whether an object belongs to the library: one of its modules or functions, or of a class of its own."""
    if isinstance(x, ModuleType):
        name = x.__name__
    else:
        name = x.__module__ if isinstance(x, FunctionType) else type(x).__module__
    return str(name).partition(".")[0] == __name__.partition(".")[0]


def _step(owner: Any, x: Any) -> str:
    """What refers to an object, in words."""
    if isinstance(owner, dict):
        return f"the entry {_key_of(owner, x)!r}"
    if isinstance(owner, CellType):
        return "a variable of a closure"
    if isinstance(owner, ModuleType):
        return f"module {owner.__name__}"
    if isinstance(owner, FunctionType):
        return f"function {owner.__qualname__}"
    name = _key_of(getattr(owner, "__dict__", {}), x)
    return f"a {type(owner).__name__}" if name is None else f"the attribute {name!r} of a {type(owner).__name__}"


def _key_of(table: dict[Any, Any], x: Any) -> Any:
    return next((key for key, value in list(table.items()) if value is x), None)
