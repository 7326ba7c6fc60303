"""Traces of the functions that loops call, kept by function: a loop in Python around `scan` traces the body once.

As in JAX, a body that is called again for equal types is not run again by Python. A trace is kept while its function
lives, if it has captured no traced value and read no ref, and if the values that Python may read while it is traced
are none that change from call to call.
"""
from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from xlamini.core import Avals, OwnedMemo, Tracer, config
from xlamini.core.jax_flags import check_tracer_leaks, debug_purity
from xlamini.core.ref_cells import READ
from xlamini.core.state import state
from xlamini.staging.trace.trace_cache import is_traced_once
from xlamini.staging.trace.tracing import Trace


class _OfFunction:
    """The traces of one function."""

    __slots__ = ("__weakref__", "traces")

    def __init__(self) -> None:
        self.traces: dict[Any, Trace] = {}


bodies = OwnedMemo("program: traces of loop bodies", 64, "traces")
_by_function: weakref.WeakKeyDictionary[Any, _OfFunction] = weakref.WeakKeyDictionary()


def body_trace(loop: str, fun: Callable[..., Any], tree: Any, avals: Avals, trace: Callable[[], Trace]) -> Trace:
    """`trace()`, or what it returned for the same function in the same kind of loop and for the same types before."""
    if not _is_kept_for(fun):
        return trace()
    owner = _by_function.setdefault(fun, _OfFunction())
    key = loop, tree, tuple(avals), config.trace_context_key(), state.axes, state.scope
    known = owner.traces.get(key)
    if known is not None:
        return known
    traced = trace()
    if READ in traced.builder.memo or Tracer in map(type, traced.captured):
        return traced
    return bodies.keep(owner, key, traced.of_its_own()._replace(names=(), builder=None))


def _is_kept_for(fun: Any) -> bool:
    """Whether a function is told from others by what it is, and this is no trace in which Python may read numbers."""
    if debug_purity.value or check_tracer_leaks.value or type(fun).__eq__ is not object.__eq__:
        return False
    has_weakrefs = type(fun).__weakrefoffset__ != 0
    return has_weakrefs and (state.builder is None or is_traced_once())
