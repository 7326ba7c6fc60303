"""The trace cache: a function that is traced again to equal equations gives the jaxpr of the earlier trace.

So what rewrites memoise on a jaxpr serves the next call of an un-jitted `grad` or `vmap` too. A program enters the
cache when it is traced the second time: one that Python control flow or a number in it makes once leaves nothing
behind. A program of equal structure from other lines of source replaces the one before, since messages name lines.

The body of a loop is not even traced again, as in JAX: its traces are kept by function (`body_trace`).
"""
from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, Final

from xlamini.core import Avals, Jaxpr, Tracer
from xlamini.core.caching.memo import Memo, drop_oldest, register
from xlamini.core.caching.structure import key_of_trace, new_places, places, structural_key
from xlamini.core.flags import config
from xlamini.core.flags.jax_flags import check_tracer_leaks, debug_purity
from xlamini.core.program.ref_cells import READ
from xlamini.core.tracing.state import state

if TYPE_CHECKING:
    from xlamini.staging.trace.tracing import Trace

traced: Final = Memo("program: equal traces (limit in equations)", 2**14, weight=lambda jaxpr: len(jaxpr.eqns))
traced_once: Final = Memo("program: hashes of programs traced once", 2**12, counted=False)
_adding = threading.Lock()


def equal_trace(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr (which captures nothing), or the one of an earlier trace that is equal to it."""
    if is_traced_once():
        return jaxpr
    key = key_of_trace(jaxpr), state.axes
    known = traced.get(key)
    if known is not None and places(known) == new_places(jaxpr):
        return known
    with _adding:
        _add(key, jaxpr)
    return jaxpr


def is_traced_once() -> bool:
    """Whether a trace is going on that serves later calls too, as that of a jitted function does."""
    builder = state.builder
    while builder is not None:
        if builder.kept:
            return True
        builder = builder.parent
    return False


def _add(key: Hashable, jaxpr: Jaxpr) -> None:
    number = hash(key)
    if number in traced_once.table and len(jaxpr.eqns) <= traced.limit:
        traced.keep(key, jaxpr)
    else:
        traced_once.keep(number, True)


def equal_in_trace(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr, or an equal one that the trace going on has met, so that each rewrite of it is made once."""
    builder: Any = state.builder
    if builder is None:
        return jaxpr
    while builder.parent is not None:
        builder = builder.parent
    key = equal_in_trace, structural_key(jaxpr), state.axes
    known = builder.memo.setdefault(key, jaxpr)
    return known if places(known) == places(jaxpr) else jaxpr


# --- bodies of loops


_MOST = 64
"""The limit of traces for one function."""

_by_function: weakref.WeakKeyDictionary[Any, dict[Any, Trace]] = weakref.WeakKeyDictionary()
"""The traces of each function, while it lives."""

register("program: traces of loop bodies", _MOST, lambda: sum(map(len, _by_function.values())), _by_function.clear)


def body_trace(loop: str, fun: Callable[..., Any], tree: Any, avals: Avals, trace: Callable[[], Trace]) -> Trace:
    """`trace()`, or what it returned for the same function in the same kind of loop and for the same types before.

    A trace is kept while its function lives, unless it captured a traced value or read a ref.
    """
    if not _is_kept_for(fun):
        return trace()
    key = loop, tree, tuple(avals), config.trace_context_key(), state.axes, state.scope
    known = _by_function.get(fun, {}).get(key)
    if known is not None:
        return known
    traced = trace()
    if READ in traced.builder.memo or Tracer in map(type, traced.captured):
        return traced
    traces = _by_function.setdefault(fun, {})
    if len(traces) >= _MOST:
        drop_oldest(traces)
    return traces.setdefault(key, traced.of_its_own()._replace(names=(), builder=None))


def _is_kept_for(fun: Any) -> bool:
    """Whether a function is told from others by what it is, and this is no trace in which Python may read numbers."""
    if debug_purity.value or check_tracer_leaks.value or type(fun).__eq__ is not object.__eq__:
        return False
    has_weakrefs = type(fun).__weakrefoffset__ != 0
    return has_weakrefs and (state.builder is None or is_traced_once())
