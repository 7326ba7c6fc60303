"""The trace cache: a function that is traced again to equal equations gives the jaxpr of the earlier trace.

So what rewrites memoise on a jaxpr serves the next call of an un-jitted `grad` or `vmap` too. A program enters the
cache when it is traced the second time: one that Python control flow or a number in it makes once leaves nothing
behind. A program of equal structure from other lines of source replaces the one before, since messages name lines.
"""
from __future__ import annotations

import threading
from collections.abc import Hashable
from typing import Any

from xlamini.core import Jaxpr
from xlamini.core.memo import Memo
from xlamini.core.state import state
from xlamini.core.structure import places, program_key, structural_key

traced = Memo("program: equal traces (limit in equations)", 2**14, weight=lambda jaxpr: len(jaxpr.eqns))
traced_once = Memo("program: hashes of programs traced once", 2**12, counted=False)
_adding = threading.Lock()


def equal_trace(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr (which captures nothing), or the one of an earlier trace that is equal to it."""
    if is_traced_once():
        return jaxpr
    key = program_key(jaxpr), state.axes
    known = traced.get(key)
    if known is not None and places(known) == places(jaxpr):
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
