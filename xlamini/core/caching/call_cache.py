"""The call cache: a library function that is called while something is traced is traced once, then copied.

What such a function adds to a program depends on the types of its traced operands, on the other arguments and on flags
alone. So it is traced by itself the first time; there and at every call of the same kind the equations are copied into
the program, and get the place of the call.
"""
from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import numpy as np

from xlamini.core import hooks
from xlamini.core.caching.memo import Memo
from xlamini.core.errors.frames import is_own, warnings_given
from xlamini.core.flags.config import trace_context_key
from xlamini.core.program.avals import Values
from xlamini.core.program.form import FusedOperation
from xlamini.core.program.jaxpr import Jaxpr, Literal
from xlamini.core.pytree import tree_flatten, tree_unflatten
from xlamini.core.tracing.body import BodyBuilder
from xlamini.core.tracing.compile_time import AtOnce
from xlamini.core.tracing.own_operands import is_trial
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import Builder, Tracer, active

_BOUNDS = frozenset({int, type(None)})
_PLAIN = frozenset({int, float, bool, str, type(None), type, type(Ellipsis)})


class RecordedCall(NamedTuple):
    """What a call adds, and the tree of what it returns; None for a value alone."""

    jaxpr: Jaxpr
    tree: Any


EAGER = "__eager__"
"""The attribute of a library function that is called where nothing is traced in place of the function itself."""

_OF_A_PROGRAM = frozenset({Tracer, Literal})
TRACES = frozenset({Builder, BodyBuilder})
"""The builders to which copies of equations are added as they are."""
_UNSEEN: Any = object()
calls: Final = Memo("call: library functions", 4096)


def inline_cached(fun: Callable[..., Any], args: Values, kwargs: Mapping[str, Any]) -> Any:
    """`fun(*args, **kwargs)`, by a copy of what the first such call has added, where that is possible."""
    builder: Any = state.builder
    if type(builder) not in TRACES:
        if not isinstance(builder, AtOnce):  # nothing is traced, or a derivative rule runs
            return fun(*args, **kwargs)
        home = builder.home_of_call(args, kwargs)
        if home is not builder:
            with active(home):
                return getattr(fun, EAGER, fun)(*args, **kwargs) if home is None else inline_cached(fun, args, kwargs)
    key, operands = [fun, trace_context_key(), state.axes], []
    is_noted = _note(args, key, operands) and _note_named(kwargs, key, operands)
    traced = calls.get(tuple(key), _UNSEEN) if is_noted else None
    if traced is _UNSEEN:
        traced = calls.keep(tuple(key), _in_place(builder, _traced, fun, args, kwargs, operands))
    if traced is None:
        return _without_literals(_in_place(builder, fun, *args, **kwargs))
    start = len(builder.equations)
    outs = list(map(_visible, builder.copied(traced.jaxpr, operands, builder.provenance or builder.here())))
    if hooks.call_copied is not None:
        hooks.call_copied(traced.jaxpr, builder.equations[start:])
    return outs[0] if traced.tree is None else tree_unflatten(traced.tree, outs)


def _in_place(builder: Builder, fun: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """`fun(*args, **kwargs)` traced into the program, operations on constants too."""
    before, builder.evaluates = builder.evaluates, False
    try:
        return fun(*args, **kwargs)
    finally:
        builder.evaluates = before


def _without_literals(out: Any) -> Any:
    """The result of a call in place, for the user."""
    if type(out) is Tracer:
        return out
    leaves, tree = tree_flatten(out)
    return tree_unflatten(tree, map(_visible, leaves)) if Literal in map(type, leaves) else out


def _visible(x: Any) -> Any:
    """A literal as a traced value, which has an array's methods."""
    return Tracer(state.builder, x, x.aval) if type(x) is Literal else x


def _note(values: Values, key: list[Any], operands: list[Any]) -> bool:
    """Add to the key what a call depends on, and to `operands` what is traced; False for other values."""
    for x in values:
        kind = type(x)
        if kind is Tracer:
            if type(x.variable) is Literal:  # a number that functions may look at
                return False
            key.append(x.aval)
            operands.append(x)
        elif kind in _PLAIN:
            key.append((kind, x or repr(x)))  # 0.0 equals -0.0
        elif kind is list or isinstance(x, tuple):
            key.append((kind, len(x)))
            if not _note(x, key, operands):
                return False
        elif kind is slice and {type(x.start), type(x.stop), type(x.step)} <= _BOUNDS:
            key.append((x.start, x.stop, x.step))
        elif isinstance(x, np.dtype | enum.Enum | FusedOperation) or (callable(x) and is_own(x)):
            key.append(x)
        else:
            return False
    return True


def _note_named(kwargs: Mapping[str, Any], key: list[Any], operands: list[Any]) -> bool:
    if not kwargs:
        return True
    key.append(tuple(kwargs))
    return _note(list(kwargs.values()), key, operands)


@is_trial
def _traced(
    fun: Callable[..., Any], args: Values, kwargs: Mapping[str, Any], operands: Values
) -> RecordedCall | None:
    """The call traced by itself. None if it has to be made in place: it raises, warns, looks at a value, …"""
    builder, warned = Builder(""), warnings_given.count
    with active(builder):
        line = builder.here().source
        inputs = iter([builder.input(x.aval) for x in operands])
        try:
            out = fun(*_with(args, inputs), **dict(zip(kwargs, _with(kwargs.values(), inputs), strict=True)))
        except Exception:
            return None
        leaves, tree = ([out], None) if type(out) in _OF_A_PROGRAM else tree_flatten(out)
        if not all(type(x) in _OF_A_PROGRAM for x in leaves):
            return None
        jaxpr, consts = builder.finish(leaves)
    scopes = {eqn.provenance.scope for eqn in jaxpr.eqns} - {state.scope}
    lines = {eqn.provenance.source for eqn in jaxpr.eqns} - {line}  # of code that a user put into a function of ours
    in_place = consts or jaxpr.effects or scopes or lines or warnings_given.count > warned
    return None if in_place else RecordedCall(jaxpr, tree)


def _with(values: Any, inputs: Iterator[Tracer]) -> list[Any]:
    """The arguments with inputs in place of the operands."""
    return [_replaced(x, inputs) for x in values]


def _replaced(x: Any, inputs: Iterator[Tracer]) -> Any:
    if type(x) is Tracer:
        return next(inputs)
    if type(x) is list or isinstance(x, tuple):
        made = getattr(x, "_make", type(x))  # of a NamedTuple
        return made(_with(x, inputs))
    return x
