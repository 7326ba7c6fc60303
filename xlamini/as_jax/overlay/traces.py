"""Which trace a value belongs to, as libraries ask it: `x._trace.main`, `find_top_trace(xs)`."""
from __future__ import annotations

import operator
import weakref
from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any, Final

from xlamini.core.program.avals import ShapedArray, aval_of
from xlamini.core.tracing.concretization import UnknownValue as Unknown, value_of
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import Builder, Tracer
from xlamini.extend import TraceState


def _gone() -> None:
    """The builder where nothing is traced."""


class TraceOf:
    """The trace of a builder, one object for each: libraries compare them by identity. It keeps nothing alive."""

    state: TraceState

    def __init__(self, builder: Builder | None):
        self.state, self._builder = TraceState(builder), _gone if builder is None else weakref.ref(builder)
        self.level: Any | int = -1 if builder is None else builder.depth

    @property
    def main(self) -> TraceOf:
        return self

    @property
    def parent_trace(self) -> TraceOf | None:
        """The trace around it; None around that of nothing."""
        builder = self._builder()
        return None if builder is None else trace_of(builder.parent)

    def is_valid(self) -> bool:
        """Whether it is going on."""
        builder = self._builder()
        return builder is None or builder.is_tracing()

    def new_arg(self, aval: Any, source_info: Any = None) -> Tracer:
        """A value of this type that the program takes after its other inputs."""
        builder = self._builder()
        if builder is None:
            raise TypeError("new_arg: nothing is traced; call it in a function that make_jaxpr traces")
        return builder.input(aval if isinstance(aval, ShapedArray) else aval_of(aval))


_NO_TRACE = TraceOf(None)


class _TraceContext:
    """What is active in this thread: the trace, and the named axes."""

    @property
    def trace(self) -> TraceOf:
        return trace_of(state.builder)

    @property
    def axis_env(self) -> Any:
        return SimpleNamespace(axis_sizes={axis.name: axis.size for axis in state.axes})

    def is_top_level(self) -> bool:
        return state.builder is None


trace_ctx: Final = _TraceContext()


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


def is_concrete(x: Any) -> bool:
    """Whether Python may read the number of a value."""
    try:
        value_of(x)
    except Unknown:
        return False
    return True


def is_constant_dim(size: Any) -> bool:
    """Whether a size is a number; all are, but for traced ones."""
    try:
        operator.index(size)
    except TypeError:  # of a traced value, too
        return False
    return True


Tracer._trace = property(lambda self: trace_of(self.builder))  # pyright: ignore[reportAttributeAccessIssue]
