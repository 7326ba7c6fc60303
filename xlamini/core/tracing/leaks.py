"""Leaked tracers: under flag `check_tracer_leaks` a tracer that outlives its trace is an error when the trace ends.

The builder has weak references to its tracers, so a trace that leaves none costs no more than these. Who refers to
those that are left is asked of the garbage collector for all of them at once, as each question is a walk over the heap.
"""
from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from types import CellType, FrameType, FunctionType, ModuleType
from typing import Any

from xlamini.core.errors import UnexpectedTracerError
from xlamini.core.errors.frames import is_hidden, is_own_module
from xlamini.core.program.avals import Values
from xlamini.core.program.jaxpr import Equation, Jaxpr
from xlamini.core.tracing.body import BodyBuilder
from xlamini.core.tracing.compile_time import AtOnce
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import Builder, Tracer, build, origin_of

_LISTED, _LOOKED_AT, _DEPTH = 3, 50, 7
Path = dict[int, str]
"""The way from an object to the tracers that it holds, in words, by their positions."""


class WatchedBuilder(Builder):
    """A builder that knows which of its tracers are alive. Those of literals are none, as they have their numbers."""

    __slots__ = ("watched",)

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.watched: list[weakref.ref[Tracer]] = []

    def alive(self) -> list[Tracer]:
        """The first of its tracers that something refers to."""
        found = {id(x): x for reference in self.watched if (x := reference()) is not None}
        return list(found.values())[:_LOOKED_AT]

    def _watch(self, out: Any) -> Any:
        tracers = out if type(out) is list else [out]
        self.watched += [weakref.ref(x) for x in tracers if type(x) is Tracer and x.builder is self]
        return out

    def input(self, *args: Any) -> Tracer:
        return self._watch(super().input(*args))

    def emit(self, *args: Any) -> Any:
        return self._watch(super().emit(*args))

    def replay(self, eqn: Equation, operands: Values) -> list[Tracer]:
        return self._watch(super().replay(eqn, operands))

    def copied(self, *args: Any) -> list[Any]:
        return self._watch(super().copied(*args))

    def inline(self, *args: Any) -> list[Any]:
        return self._watch(super().inline(*args))


class WatchedAtOnce(WatchedBuilder, AtOnce):
    """A watched one that evaluates what is known."""

    __slots__ = ()


class WatchedBody(WatchedBuilder, BodyBuilder):
    """A watched one that captures refs."""

    __slots__ = ()


_WATCHED = {Builder: WatchedBuilder, AtOnce: WatchedAtOnce, BodyBuilder: WatchedBody}


def build_without_leaks(fun: Callable[..., Any], *args: Any, kind: type[Builder]) -> tuple[Jaxpr, list[Any]]:
    """`build`; UnexpectedTracerError if the user's program still refers to a tracer after the trace."""
    builder: Any = None

    def noted(*tracers: Any) -> Any:
        nonlocal builder
        builder = state.builder
        return fun(*tracers)

    made = build(noted, *args, kind=_WATCHED[kind])
    _refuse_leaks(builder)
    return made


def _refuse_leaks(builder: WatchedBuilder) -> None:
    places = _leaked(builder, 0)  # after a collection of the youngest objects: one of all takes seconds
    confirmed = _leaked(builder, 2) if places else places
    leaks = [(x, places[id(x)]) for x in builder.alive() if id(x) in confirmed and id(x) in places]
    if not leaks:
        return
    lines = "\n".join(f"  {x!r}, made {origin_of(x)}, is in {place}" for x, place in leaks[:_LISTED])
    raise UnexpectedTracerError(
        f"Leaked tracers: {len(leaks)} of {builder.name or 'a function'} are referenced after its trace has ended:\n"
        f"{lines}\nA traced value must not be kept in a global, an attribute or a closure: return it from the traced "
        "function instead."
    )


def _leaked(builder: WatchedBuilder, generation: int) -> dict[int, str]:
    """Where the user's program refers to tracers after a collection, in words, by their ids."""
    if not builder.alive():
        return {}
    gc.collect(generation)
    alive = builder.alive()
    return {id(alive[i]): place for i, place in _places(alive, _variables()).items()}


def _places(tracers: list[Tracer], variables: dict[int, str]) -> dict[int, str]:
    """Where the user's program refers to tracers, in words, by their positions; those that it does not are left out.

    A function or an object of the user's that the library holds, such as a rule, is no leak of what it closes over.
    """
    places: dict[int, str] = {}
    objects: list[Any] = list(tracers)
    paths = [{i: ""} for i in range(len(tracers))]
    seen = {id(tracers), id(objects)}
    for _ in range(_DEPTH):
        for x, path in zip(objects, paths, strict=True):
            if id(x) in variables:
                _add(places, path, variables[id(x)])
        objects, paths = _owners(objects, paths, seen, places)
    return places


def _add(places: dict[int, str], path: Path, root: str) -> None:
    for i, steps in path.items():
        places.setdefault(i, f"{steps}{root}")


def _owners(
    objects: list[Any], paths: list[Path], seen: set[int], places: dict[int, str]
) -> tuple[list[Any], list[Path]]:
    """What refers to these objects, and the paths from there to the tracers; a module or a class is a place."""
    wanted = {id(x): path for x, path in zip(objects, paths, strict=True)}
    owners: list[Any] = []
    further: list[Path] = []
    seen.update((id(objects), id(owners)))
    for owner in gc.get_referrers(*objects) if objects else ():
        if id(owner) in seen or isinstance(owner, FrameType) or _is_own(owner):
            continue
        seen.add(id(owner))
        held = [x for x in gc.get_referents(owner) if id(x) in wanted]
        if isinstance(owner, ModuleType | type):
            for x in held:
                _add(places, wanted[id(x)], _step(owner, x))
            continue
        owners.append(owner)
        further.append({i: f"{steps}{_step(owner, x)} in " for x in held for i, steps in wanted[id(x)].items()})
    return owners, further


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
    return is_own_module(name)


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
