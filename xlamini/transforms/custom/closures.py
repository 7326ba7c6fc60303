"""What a rule closes over, found when the function is called, because by the time of the rule its trace may be over.

The rule is traced when somebody first asks for what it gives. What it closed over is then an operand of the call, and
stands for the tracer that the rule holds.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from xlamini.core.pytree import keystr, tree_flatten_with_path
from xlamini.core.tracer import Tracer, aval_of, is_usable, state
from xlamini.runtime.to_device import ArrayImpl

_MOST = 1000


def closed_over(*things: Any) -> list[Tracer]:
    """The tracers of traces going on that functions and containers hold, as far as a look inside finds them."""
    found: dict[Any, Tracer] = {}
    seen: set[int] = set()
    waiting = list(things)
    while waiting and len(seen) < _MOST:
        thing = waiting.pop()
        if type(thing) is Tracer:
            if is_usable(thing):
                found[thing.variable] = thing
        elif id(thing) not in seen:
            seen.add(id(thing))
            waiting.extend(_held_by(thing))
    return list(found.values())


def _held_by(thing: Any) -> list[Any]:
    """What is directly inside a thing: elements, attributes, and for a function what it was made with."""
    match thing:
        case str() | bytes() | np.ndarray() | ArrayImpl() | type() | ModuleType():
            return []
        case tuple() | list() | set() | frozenset():
            return list(thing)
        case dict():
            return list(thing.values())
        case MethodType():
            return [thing.__self__, thing.__func__]
        case functools.partial():
            return [thing.func, thing.args, thing.keywords]
    held = list(getattr(thing, "__dict__", {}).values())
    if isinstance(thing, FunctionType):
        held += [thing.__defaults__, thing.__kwdefaults__, *(value for _, value in _named_cells(thing))]
    return held


def _named_cells(fun: Any) -> list[tuple[str, Any]]:
    """The variables that a function closes over, those that have a value."""
    found = []
    names = getattr(getattr(fun, "__code__", None), "co_freevars", ())
    for name, cell in zip(names, getattr(fun, "__closure__", None) or (), strict=False):
        try:
            found.append((name, cell.cell_contents))
        except ValueError:  # not assigned yet
            continue
    return found


def current(tracer: Tracer) -> Any:
    """The tracer, or what it has become in the rewrite of its program that is going on."""
    assert state.builder is not None
    return tracer if tracer.builder.is_tracing() else state.builder.stand_in(tracer)


def stand_for(closed: Sequence[Any], operands: Sequence[Any]) -> None:
    """Let these operands stand for the variables that a rule closes over, in the trace of the rule that begins."""
    assert state.builder is not None
    state.builder.environment = dict(zip(closed, operands, strict=True))


def captured_names(fun: Any, captured: Sequence[Any]) -> tuple[str, ...]:
    """How the user calls each value that a function captured."""
    cells = _named_cells(inspect.unwrap(fun))
    return tuple(_name_in(cells, x) for x in captured)


def _name_in(cells: Sequence[tuple[str, Any]], value: Any) -> str:
    for name, held in cells:
        for path, leaf in tree_flatten_with_path(held)[0]:
            if leaf is value or (type(leaf) is type(value) is Tracer and leaf.variable is value.variable):
                return repr(name + keystr(path))
    return f"a value of type {aval_of(value).str_short(short_dtypes=False)}"
