"""The trace cache: retracing a function to equal equations returns the jaxpr of the earlier trace.

The rewrites memoised on that jaxpr then serve the next call of an un-jitted `grad` or `vmap` too. A program enters the
cache when it is traced the second time, so one that Python control flow or a changing number produces once takes no
room. A program of equal structure from other source lines replaces the cached one, as messages name lines.
"""
from __future__ import annotations

import threading
from collections.abc import Hashable

from xlamini.core.jaxpr import Jaxpr
from xlamini.core.named_axes import axes_here
from xlamini.core.structure import places, program_key
from xlamini.core.tracer import state

MAX_EQUATIONS = 2**14
"""How many equations the programs kept have altogether."""
MAX_MET = 2**12

_known: dict[Hashable, Jaxpr] = {}
_met: dict[int, None] = {}
_adding = threading.Lock()


def recognised(jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr (which captures nothing), or the one of an earlier trace that is equal to it."""
    if is_traced_once():
        return jaxpr
    key = program_key(jaxpr), axes_here()
    known = _known.get(key)
    if known is not None and places(known) == places(jaxpr):
        return known
    with _adding:
        _note(key, jaxpr)
    return jaxpr


def is_traced_once() -> bool:
    """Whether a trace is going on that serves later calls too, as that of a jitted function does."""
    builder = state.builder
    while builder is not None:
        if builder.kept:
            return True
        builder = builder.parent
    return False


def _note(key: Hashable, jaxpr: Jaxpr) -> None:
    number, size = hash(key), len(jaxpr.eqns)
    if number not in _met or size > MAX_EQUATIONS:
        _met[number] = None
        if len(_met) > MAX_MET:
            del _met[next(iter(_met))]
        return
    _known[key] = jaxpr
    size = sum(len(each.eqns) for each in _known.values())
    while size > MAX_EQUATIONS:
        size -= len(_known.pop(next(iter(_known))).eqns)


def clear() -> None:
    """Forget all programs."""
    with _adding:
        _known.clear()
        _met.clear()
