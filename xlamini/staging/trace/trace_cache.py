"""Programs traced before: a function traced again to the same equations is the jaxpr of the first time.

So whatever rewrites remember on a jaxpr serves the next call of an un-jitted `grad` or `vmap` too. Kept is what has
been met twice: a program that Python control flow or a number in it makes once and never again leaves nothing behind. A
program of the same structure that was written elsewhere takes the place of the one before, since messages name lines.
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
