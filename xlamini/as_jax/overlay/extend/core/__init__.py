"""`jax.extend.core`: programs as values."""
from __future__ import annotations

import weakref
from typing import Any

import xlamini
from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.refusals import (
    TraceTag as TraceTag,
    set_current_trace as set_current_trace,
    take_current_trace as take_current_trace,
)
from xlamini.core.avals import ShapedArray
from xlamini.core.effects import Effect as Effect, Effects as Effects, no_effects as no_effects
from xlamini.core.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from xlamini.core.evaluation import jaxpr_as_fun as jaxpr_as_fun
from xlamini.core.jaxpr import (
    ClosedJaxpr as ClosedJaxpr,
    Equation as JaxprEqn,
    Jaxpr as Jaxpr,
    Literal as Literal,
    Var as Var,
    jaxprs_in as jaxprs_in_params,
)
from xlamini.core.state import state

__getattr__ = fall_through(__name__)


class DropVar:
    """The variable of an unused result. There are none here: every result has a `Var`."""

    def __init__(self, aval: ShapedArray):
        raise TypeError("DropVar: an unused result has a Var like all others; write Var(aval)")


def subjaxprs(jaxpr: Jaxpr) -> list[Jaxpr]:
    """The jaxprs among the params of a jaxpr's equations."""
    return [inner for eqn in jaxpr.eqns for inner in jaxprs_in_params(eqn.params)]


def mapped_aval(size: int, axis: int | None, aval: ShapedArray) -> ShapedArray:
    """The type of one element along a mapped axis."""
    return aval if axis is None else aval.without(axis)


def unmapped_aval(size: int, axis: int | None, aval: ShapedArray, *explicit: Any) -> ShapedArray:
    """The type with a mapped axis put back."""
    return aval if axis is None else aval.inserted(axis, size)


def valid_jaxtype(x: Any) -> bool:
    """Whether a value is an array or a number."""
    try:
        xlamini.typeof(x)
    except TypeError:
        return False
    return True


def concrete_or_error(force: Any, value: Any, context: str = "") -> Any:
    """`force(value)`, such as `int(x)`, or the value itself; an error of traced values, which have no number."""
    return value if force is None else force(value)


class OpaqueTraceState:
    """Which trace is active: equal to those of the same trace."""

    def __init__(self) -> None:
        self._builder = None if state.builder is None else weakref.ref(state.builder)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, OpaqueTraceState) and self._builder == other._builder

    def __hash__(self) -> int:
        return hash(self._builder)

    def __deepcopy__(self, memo: Any) -> OpaqueTraceState:
        return self


def get_opaque_trace_state(convention: str | None = None) -> OpaqueTraceState:
    """The trace that is active now, to be compared with a later one."""
    return OpaqueTraceState()
