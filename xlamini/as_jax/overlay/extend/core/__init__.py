"""`jax.extend.core`: programs as values."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

import xlamini
from xlamini.as_jax.jaxprs.forms import Jaxpr as Jaxpr, Var as Var, jaxprs_in_params as jaxprs_in_params
from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.api_util import DebugInfo as DebugInfo
from xlamini.as_jax.overlay.primitive import Primitive as Primitive
from xlamini.as_jax.overlay.refusals import (
    TraceTag as TraceTag,
    set_current_trace as set_current_trace,
    take_current_trace as take_current_trace,
)
from xlamini.as_jax.overlay.traces import find_top_trace as find_top_trace
from xlamini.core.dtypes.table import scalar_types
from xlamini.core.errors import InconclusiveDimensionOperation as InconclusiveDimensionOperation
from xlamini.core.program.avals import Params, ShapedArray
from xlamini.core.program.effects import Effect as CoreEffect, Effects as Effects, no_effects as no_effects
from xlamini.core.program.evaluation import jaxpr_as_fun as jaxpr_as_fun
from xlamini.core.program.jaxpr import (
    Atom,
    ClosedJaxpr as ClosedJaxpr,
    Equation as JaxprEqn,
    Jaxpr as CoreJaxpr,
    Literal as Literal,
    Provenance,
    Var as CoreVar,
)
from xlamini.core.program.jaxpr_check import check_jaxpr as check_jaxpr
from xlamini.core.tracing.state import state
from xlamini.extend import TraceState, trace_state

__getattr__: Final = fall_through(__name__)


class Effect(CoreEffect):
    """A kind of effect; that of a subclass has its name."""

    __slots__ = ()

    def __new__(cls, name: str = "", ordered: bool = False, observing: bool = False) -> Effect:
        return super().__new__(cls, name or cls.__name__, ordered, observing)


class DropVar:
    """The variable of an unused result. There are none here: every result has a `Var`."""

    def __init__(self, aval: ShapedArray):
        raise TypeError("DropVar: an unused result has a Var like all others; write Var(aval)")


class AbstractToken:
    """The type of a token that orders effects. No value of a program has it: effects are ordered by themselves."""


class Token:
    """A token that orders effects, of which there are none."""

    def __init__(self, buf: Any):
        raise TypeError("Token: effects are ordered without tokens; wait for them by jax.effects_barrier")


class CallPrimitive(Primitive):
    """A primitive that calls a function of flat values: the function's equations take its place."""

    multiple_results = call_primitive = True

    def bind(self, fun: Any, *operands: Any, **params: Any) -> Any:
        return call_impl(fun, *operands)


def call_impl(f: Any, *args: Any, **params: Any) -> Any:
    """The results of a function of flat values."""
    return f.call_wrapped(*args)


array_types: set[type] = {np.ndarray, *(dtype.type for dtype in scalar_types)}
"""NumPy's classes of arrays and of scalars."""


def unsafe_get_axis_names_DO_NOT_USE() -> list[Any]:
    """The named axes that collectives may refer to."""
    return [axis.name for axis in state.axes]


def nonempty_axis_env_DO_NOT_USE() -> bool:
    """Whether there are named axes."""
    return bool(state.axes)


def subjaxprs(jaxpr: CoreJaxpr) -> list[CoreJaxpr]:
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


def get_opaque_trace_state(convention: str | None = None) -> TraceState:
    """The trace that is active now, to be compared with a later one."""
    return trace_state()


def new_jaxpr_eqn(
    invars: Sequence[Atom], outvars: Sequence[CoreVar], primitive: Any, params: Params, effects: Effects, *more: Any
) -> JaxprEqn:
    """An equation that stands in no program yet."""
    return JaxprEqn(primitive, invars, outvars, params, effects, Provenance(None), 0)


def primal_dtype_to_tangent_dtype(dtype: Any) -> Any:
    """The dtype of tangents: float0 for integers and booleans."""
    return ShapedArray((), dtype).to_tangent_aval().dtype


def gensym() -> type[Var]:
    """What makes variables of a type."""
    return Var
