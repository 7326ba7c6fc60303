"""`jax.interpreters.partial_eval`: programs of functions of which some arguments are known."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from xlamini.as_jax.jaxprs.outward import handed_out, in_jax_form
from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.extend.linear_util import WrappedFun
from xlamini.as_jax.overlay.refusals import Trace
from xlamini.core.program.avals import Avals, ShapedArray
from xlamini.core.program.jaxpr import ClosedJaxpr, Jaxpr
from xlamini.core.tracing.tracer import Tracer
from xlamini.extend import Unknown, program_of, trace_partly
from xlamini.interpreters.dce import dce

__getattr__: Final = fall_through(__name__)

DynamicJaxprTracer = Tracer  # a value of the program that is being written, as all traced values are

Val = Any


class JaxprTracer(Tracer):
    """A value that is not known where others are; there are none: `trace_to_jaxpr_nounits` writes one program."""


class DynamicJaxprTrace(Trace):
    """The trace that writes a program; libraries ask whether a trace is one."""


custom_partial_eval_rules: dict[Any, Any] = {}
custom_staging_rules: dict[Any, Any] = {}
dce_rules: dict[Any, Any] = {}
partial_eval_jaxpr_custom_rules: dict[Any, Any] = {}
"""Libraries add to these; the rules of a primitive of their own are asked of `xlamini.extend`."""


class PartialVal(tuple):
    """The pair (None, value) of a known value, (type, None) of an unknown one."""

    __slots__ = ()

    @classmethod
    def unknown(cls, aval: ShapedArray) -> PartialVal:
        return cls((aval, None))

    @classmethod
    def known(cls, const: Any) -> PartialVal:
        return cls((None, const))

    def is_known(self) -> bool:
        return self[0] is None

    def get_known(self) -> Any:
        return self[1]

    def get_aval(self) -> ShapedArray:
        return self[0]


def trace_to_jaxpr_nounits(
    fun: WrappedFun, pvals: Sequence[PartialVal], instantiate: bool | Sequence[bool] = False
) -> tuple[Jaxpr, list[PartialVal], list[Any]]:
    """Call a function of flat values; what depends on no unknown one is computed now, the rest is the program."""
    args = [p.get_known() if p.is_known() else Unknown(p.get_aval()) for p in pvals]
    found = trace_partly(fun.call_wrapped, args, instantiate)
    outs = [PartialVal.unknown(x.aval) if isinstance(x, Unknown) else PartialVal.known(x) for x in found.outs]
    closed = handed_out(ClosedJaxpr(found.jaxpr, found.consts))
    return closed.jaxpr, outs, closed.consts


def trace_to_jaxpr_dynamic(
    fun: WrappedFun, in_avals: Avals, **options: Any
) -> tuple[Jaxpr, list[ShapedArray], list[Any]]:
    """The program of a function of flat values, the types of its results, and the values that it captures."""
    closed = handed_out(program_of(fun.call_wrapped, in_avals))
    return closed.jaxpr, closed.out_avals, closed.consts


def dce_jaxpr(
    jaxpr: Jaxpr, used_outputs: bool | Sequence[bool], instantiate: bool = False
) -> tuple[Jaxpr, list[bool]]:
    """The program of the used results alone, and a mask of the inputs that it still takes; all constvars stay."""
    used = [used_outputs] * len(jaxpr.outvars) if isinstance(used_outputs, bool) else used_outputs
    program = jaxpr.with_consts([None] * len(jaxpr.constvars))
    slim, taken = dce(program, tuple(used), instantiate)
    return in_jax_form(slim), list(taken)
