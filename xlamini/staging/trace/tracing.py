"""Tracing: from a user's function of pytrees to a jaxpr of flat values."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import (
    Avals,
    Builder,
    Jaxpr,
    Literal,
    ShapedArray,
    Tracer,
    Values,
    close_over,
    flatten_from_user,
    unflatten,
)
from xlamini.core.events import TRACED, Phase
from xlamini.core.flags.jax_flags import check_tracer_leaks, no_tracing
from xlamini.core.tracing.compile_time import AtOnce
from xlamini.core.tracing.own_operands import is_entrance
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import build
from xlamini.primitives.placement.xla_metadata import mark_all, metadata_around
from xlamini.runtime import device_put_value
from xlamini.staging.trace.arguments import ArgNames, check_outputs, name_of
from xlamini.staging.trace.trace_cache import equal_trace


class Trace(NamedTuple):
    """The result of tracing: a jaxpr whose first inputs are the captured values, those values, and the output's tree.

    `builder` made the jaxpr; while it is referenced, concrete values of its tracers can be read. `outside` is what the
    function read beside its arguments, noted under flag `debug_purity`.
    """

    jaxpr: Jaxpr
    captured: list[Any]
    out_tree: Any
    names: Sequence[str]
    builder: Any = None
    outside: Sequence[Any] = ()
    of_refs: Trace | None = None
    """Of the program of the values of refs, the trace of the refs."""

    def of_its_own(self) -> Trace:
        """With copies of captured ndarrays, which the caller may write to; a program has the values of the trace."""
        if not any(map(_is_writable, self.captured)):
            return self
        return self._replace(captured=[x.copy() if _is_writable(x) else x for x in self.captured])


def _is_writable(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.flags.writeable


class TracedCall(NamedTuple):
    """The trace of one call of a jitted function, with what its signature does not show: donation, static arguments."""

    trace: Trace
    in_tree: Any
    name: str
    donated: Sequence[bool]
    statics: Sequence[str] = ()

    @property
    def avals(self) -> list[ShapedArray]:
        """The types of the arguments, flat."""
        return self.trace.jaxpr.in_avals[len(self.trace.captured) :]


def trace(
    fun: Callable[..., Any],
    in_tree: Any,
    avals: Avals,
    values: Sequence[Any] | None = None,
    names: Sequence[str] | None = None,
    name: str | None = None,
    reuse_equal: bool = False,
    derivative_by: str = "",
    kind: type[Builder] = Builder,
    call: Any = None,
) -> Trace:
    """Trace `fun(*args, **kwargs)` for leaves of these types; `in_tree` is the tree of `(args, kwargs)`.

    `values` are the concrete values that Python control flow may read, None for a leaf without; `derivative_by` is as
    in `build`. `reuse_equal`: the caller traces on every call, so the trace cache is consulted. `kind` is
    that of the builder. `call` is that of the event. Raises RuntimeError under flag `no_tracing`, UnexpectedTracerError
    for a tracer that outlives the trace under `check_tracer_leaks`.
    """
    out_tree: Any = None
    builder: Any = None
    fun_name = name_of(fun) if name is None else name
    names = ArgNames(fun, in_tree) if names is None else names
    if no_tracing.value:
        raise RuntimeError(f"{fun_name} would be traced for arguments of new types, but flag no_tracing is set")

    def flat(*tracers: Any) -> Values:
        nonlocal out_tree, builder
        builder, metadata = state.builder, metadata_around.value
        args, kwargs = unflatten(in_tree, tracers)
        leaves, out_tree = flatten_from_user(fun(*args, **kwargs))
        if metadata:
            mark_all(builder, metadata)
        check_outputs(leaves, out_tree, fun_name)
        return leaves

    with Phase(TRACED, fun_name, call=call):
        if check_tracer_leaks.value:
            from xlamini.core.tracing.leaks import build_without_leaks  # for those who look for one

            jaxpr, captured = build_without_leaks(flat, avals, fun_name, names, values, derivative_by, kind=kind)
        else:
            jaxpr, captured = build(flat, avals, fun_name, names, values, derivative_by, kind)
    closed = equal_trace(close_over(jaxpr)) if reuse_equal else close_over(jaxpr)
    return Trace(closed, captured, out_tree, names, builder)


def kind_of_trace() -> type[Builder]:
    """The kind of builder for a transformation of a function: `AtOnce` unless it is part of a program."""
    builder = state.builder
    return AtOnce if builder is None or builder.evaluates else Builder


def rebuilt(tree: Any, leaves: Values) -> Any:
    """The output for the user: the leaves as a tree, with arrays or tracers in place of literals."""
    return unflatten(tree, visible(leaves))


def visible(values: Values) -> list[Any]:
    """The values for the user, with an array in place of a literal, or while tracing a tracer."""
    return [_of_literal(x) if type(x) is Literal else x for x in values]


def _of_literal(literal: Literal) -> Any:
    builder = state.builder
    if builder is None or builder.evaluates:
        return device_put_value(literal.val, aval=literal.aval)
    return Tracer(builder, literal, literal.aval)


@is_entrance
def of_dynamic(fun: Callable[..., Any], statics: Any, /, *args: Any, **kwargs: Any) -> Any:
    """A jitted function of its dynamic arguments."""
    assert state.builder is not None
    state.builder.kept = True  # later calls reuse the trace, so no value of a ref may become part of it
    if statics is None:
        return fun(*args, **kwargs)
    full_args, full_kwargs = statics.restored(args, kwargs)
    return fun(*full_args, **full_kwargs)
