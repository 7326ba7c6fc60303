"""Closures: closure_convert, which turns values closed over into arguments, and the tracers that rules close over.

A rule is traced when it is first needed, when the trace of the values that it closes over may have ended. So they are
collected when the function is called, are operands of the call, and stand in for the tracers when the rule is traced.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any, TypeVar

import numpy as np

from xlamini.core import (
    Tracer,
    Values,
    aval_of,
    first_difference,
    flatten_from_user,
    is_differentiable,
    keystr,
    tree_flatten_with_path,
)
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import is_usable
from xlamini.runtime import ArrayImpl
from xlamini.staging import (
    ArgNames,
    Trace,
    avals_of,
    check_callable,
    checked_avals,
    chosen,
    inverse,
    merged,
    name_of,
    rebuilt,
)
from xlamini.staging.run.eager.program_cache import apply
from xlamini.staging.trace.tracing import trace

R = TypeVar("R")

_MAX_OBJECTS = 1000
"""How many objects are searched for tracers."""


def closure_convert(fun: Callable[..., R], *example_args: Any) -> tuple[Callable[..., R], list[Any]]:
    """A function like `fun` that takes what `fun` closes over after its own arguments, and a list of these values.

    The values are tracers of floats: those in which somebody may want a derivative, which a rule (of `custom_vjp`, say)
    gives for arguments alone. All others stay closed over. `fun` is traced for arguments of the types of
    `example_args`, so Python control flow in it cannot depend on their values.

    Calling the result with arguments of another structure, shape or dtype is a TypeError.

    >>> def slope(a):
    ...     converted, values = closure_convert(lambda x: a * x, 1.0)
    ...     return converted(5.0, *values)
    >>> xlamini.grad(slope)(2.0)
    Array(5., dtype=float32, weak_type=True)
    """
    check_callable("closure_convert", fun)
    leaves, in_tree = flatten_from_user((example_args, {}))
    names = ArgNames(fun, in_tree)
    avals = avals_of(leaves, names, name_of(fun))
    traced = trace(fun, in_tree, avals, None, names).of_its_own()
    hoisted = [type(x) is Tracer and is_differentiable(x.aval) for x in traced.captured]
    values = chosen(traced.captured, hoisted)
    kept = chosen(traced.captured, inverse(hoisted))
    count = len(example_args)

    @api_boundary
    def converted(*args: Any) -> Any:
        given = args[len(args) - len(values) :] if values else ()
        own = _checked(fun, in_tree, args[: len(args) - len(given)], traced, count)
        outs = apply(traced.jaxpr, [*merged(hoisted, given, kept), *own])
        return rebuilt(traced.out_tree, outs)

    converted.__name__ = name_of(fun)
    return converted, values


def _checked(fun: Callable[..., Any], in_tree: Any, args: Values, traced: Trace, count: int) -> list[Any]:
    """The leaves of the arguments; TypeError unless they are of the types of the example's."""
    leaves, tree = flatten_from_user((tuple(args), {}))
    if tree != in_tree:
        where = first_difference(in_tree, tree, ("example_args", "args"))
        raise TypeError(
            f"closure_convert: the converted {name_of(fun)} takes {count} arguments of the structure of example_args, "
            f"and then {len(traced.captured)} values at most that it closed over: {where}"
        )
    avals = checked_avals(leaves, traced.names, name_of(fun))
    for i, (found, wanted) in enumerate(zip(avals, traced.jaxpr.in_avals[len(traced.captured) :], strict=True)):
        if (found.shape, found.dtype) != (wanted.shape, wanted.dtype):
            raise TypeError(
                f"closure_convert: the argument {traced.names[i]!r} of the converted {name_of(fun)} is "
                f"{found.str_long()}, but in example_args {wanted.str_long()}; "
                "convert the function for arguments of this type"
            )
    return leaves


# --- the values that rules close over


def closed_over(*things: Any) -> list[Tracer]:
    """The tracers that functions and containers hold, those of traces that have not ended."""
    found: dict[Any, Tracer] = {}
    seen: set[int] = set()
    waiting = list(things)
    while waiting and len(seen) < _MAX_OBJECTS:
        thing = waiting.pop()
        if type(thing) is Tracer:
            if is_usable(thing):
                found[thing.variable] = thing
        elif id(thing) not in seen:
            seen.add(id(thing))
            waiting.extend(_held_by(thing))
    return list(found.values())


def _held_by(thing: Any) -> list[Any]:
    """The elements or attributes of an object; for a function its defaults and closure."""
    match thing:
        case None | str() | bytes() | np.ndarray() | ArrayImpl() | type() | ModuleType():
            return []
        case FunctionType():
            cells = [value for _, value in _named_cells(thing)]
            return [*vars(thing).values(), thing.__defaults__, thing.__kwdefaults__, *cells]
        case tuple() | list() | set() | frozenset() | dict():
            return list(thing.values() if isinstance(thing, dict) else thing)
        case MethodType():
            return [thing.__self__, thing.__func__]
        case functools.partial():
            return [thing.func, thing.args, thing.keywords]
    return [*getattr(thing, "__dict__", {}).values(), *_in_slots(thing)]


def _in_slots(thing: Any) -> list[Any]:
    """The attributes for which an object's class has slots, those that are set."""
    named = [vars(base).get("__slots__", ()) for base in type(thing).__mro__]
    names = [name for slots in named for name in ([slots] if isinstance(slots, str) else slots)]
    return [getattr(thing, name) for name in names if hasattr(thing, name)]


def _named_cells(fun: Any) -> list[tuple[str, Any]]:
    """The names and values of the variables that a function closes over."""
    found = []
    names = getattr(getattr(fun, "__code__", None), "co_freevars", ())
    for name, cell in zip(names, getattr(fun, "__closure__", None) or (), strict=False):
        try:
            found.append((name, cell.cell_contents))
        except ValueError:  # not assigned yet
            continue
    return found


def current(tracer: Tracer) -> Any:
    """The tracer, or its value in the program into which its own is being rewritten."""
    assert state.builder is not None
    return tracer if tracer.builder.is_tracing() else state.builder.stand_in(tracer)


def stand_for(closed: Values, operands: Values) -> None:
    """In the trace of a rule, use these operands for the variables that the rule closes over."""
    assert state.builder is not None
    state.builder.environment = dict(zip(closed, operands, strict=True))


def captured_names(fun: Any, captured: Values) -> tuple[str, ...]:
    """The name of each value that a function captured, as the user wrote it."""
    cells = _named_cells(inspect.unwrap(fun))
    return tuple(_name_in(cells, x) for x in captured)


def _name_in(cells: Sequence[tuple[str, Any]], value: Any) -> str:
    for name, held in cells:
        for path, leaf in tree_flatten_with_path(held)[0]:
            if leaf is value or (type(leaf) is type(value) is Tracer and leaf.variable is value.variable):
                return repr(name + keystr(path))
    return f"a value of type {aval_of(value).str_long()}"
