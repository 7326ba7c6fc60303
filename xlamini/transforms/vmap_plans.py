"""Plans of `vmap` outside of traces: the batched program of a library function is made once.

A user's function is called at every call of `vmap(f)`, because Python in it may do something else each time. A
composite, such as `jax.numpy.dot`, does what its arguments' types and the flags say. So a second call from the same
line, for the same axes and types, runs the program of the first.
"""
from __future__ import annotations

from collections.abc import Hashable
from typing import Any, Final, NamedTuple

from xlamini.core import Avals, Jaxpr
from xlamini.core.caching.memo import Memo
from xlamini.core.errors.frames import user_frame
from xlamini.core.flags.config import recorder, trace_context_key
from xlamini.core.flags.jax_flags import check_tracer_leaks, debug_purity
from xlamini.core.tracing.state import state
from xlamini.staging.run.eager.composite import is_composite


class VmapPlan(NamedTuple):
    """A batched program, which captures nothing, and the tree of its outputs."""

    jaxpr: Jaxpr
    out_tree: Any


plans: Final = Memo("program: library functions under vmap", 1024)


def plan_key(mapping: Any, in_tree: Any, avals: Avals) -> Hashable | None:
    """What the batched program depends on, and the user's line; None where each call is to be traced.

    An argument that all examples share has no part in plans, since a function may look at its value.
    """
    if state.builder is not None or not is_composite(mapping.fun) or _is_watched() or not _has_plain_axes(mapping):
        return None
    frame = user_frame()
    place = None if frame is None else (id(frame.f_code), frame.f_lasti)
    return mapping, in_tree, tuple(avals), trace_context_key(), state.axes, state.scope, place


def _is_watched() -> bool:
    """Whether somebody wants to see the trace."""
    return recorder.value is not None or debug_purity.value or check_tracer_leaks.value


def _has_plain_axes(mapping: Any) -> bool:
    """Whether every argument is mapped along a number, and so is every output."""
    entries = mapping.in_axes if type(mapping.in_axes) is tuple else (mapping.in_axes,)
    return {int}.issuperset(map(type, entries)) and type(mapping.out_axes) is int and mapping.on_cond == "select"
