"""Which trace a value belongs to, as libraries ask it: `x._trace.main`, `find_top_trace(xs)`."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xlamini.core.state import state
from xlamini.core.tracer import Builder, Tracer
from xlamini.extend import TraceState


class TraceOf:
    """The trace of a builder, one object for each: libraries compare them by identity. It keeps nothing alive."""

    def __init__(self, builder: Builder | None):
        self.state = TraceState(builder)
        self.level = -1 if builder is None else builder.depth

    @property
    def main(self) -> TraceOf:
        return self


_NO_TRACE = TraceOf(None)


def trace_of(builder: Builder | None) -> TraceOf:
    """The trace of a builder."""
    if builder is None:
        return _NO_TRACE
    found = builder.memo.get(TraceOf)
    if found is None:
        found = builder.memo[TraceOf] = TraceOf(builder)
    return found


def find_top_trace(xs: Iterable[Any]) -> TraceOf:
    """The innermost trace of some values, or that of none of them is traced."""
    builders = [x.builder for x in xs if type(x) is Tracer]
    return trace_of(max(builders, key=lambda builder: builder.depth, default=state.builder))


Tracer._trace = property(lambda self: trace_of(self.builder))  # pyright: ignore[reportAttributeAccessIssue]
