"""Traces: programs of flat functions, partly known ones too, and whether a trace is going on."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xlamini.core import Avals, Builder, ClosedJaxpr, Equation, Jaxpr, Params, ShapedArray, Tracer, Values, Var, active
from xlamini.core.program.bindable import further
from xlamini.core.tracing.compile_time import Evaluation
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import build
from xlamini.extend.rules import as_value, as_values
from xlamini.interpreters.bindings import bound, read


def trace_is_clean() -> bool:
    """Whether nothing is being traced, so that operations run now; so they do in `ensure_compile_time_eval`.

    >>> seen = []
    >>> def f(x):
    ...     seen.append(trace_is_clean())
    ...     return x
    >>> _ = f(1.0), xlamini.jit(f)(1.0)
    >>> seen
    [True, False]
    """
    return state.builder is None or type(state.builder) is Evaluation


class TraceState:
    """The trace going on, to be compared with another time; it keeps nothing alive, and copies are equal.

    >>> trace_state()
    TraceState(clean)
    >>> trace_state() == trace_state()
    True
    """

    __slots__ = ("_trace",)

    def __init__(self, builder: Any):
        self._trace = None if builder is None else weakref.ref(builder)

    def __eq__(self, other: object) -> bool:
        return type(other) is TraceState and self._trace is other._trace

    def __hash__(self) -> int:
        return id(self._trace)

    def __copy__(self) -> TraceState:
        return self

    def __deepcopy__(self, memo: Any) -> TraceState:
        return self

    def __repr__(self) -> str:
        return "TraceState(clean)" if self._trace is None else "TraceState(tracing)"


def trace_state() -> TraceState:
    """The state of tracing, equal to another one if and only if both are of the same trace, or of none.

    >>> trace_state() == trace_state()
    True
    >>> before = trace_state()
    >>> xlamini.eval_shape(lambda x: x * (trace_state() == before), 1.0).dtype
    dtype('float32')
    """
    return TraceState(state.builder)


def trace_of(x: Any) -> TraceState:
    """The trace that a traced value belongs to; that of no trace for any other value.

    >>> trace_of(1.0)
    TraceState(clean)
    >>> xlamini.eval_shape(lambda x: x * (trace_of(x) == trace_state()), 1.0).dtype
    dtype('float32')
    """
    return TraceState(x.builder if type(x) is Tracer else None)


def program_of(fun: Callable[..., Sequence[Any]], avals: Avals, name: str = "") -> ClosedJaxpr:
    """The program of a function of flat values that returns a list, for operands of these types.

    >>> from xlamini import extend
    >>> program_of(lambda x: [x + x], [extend.ShapedArray((), "float32")])
    { lambda ; a:f32[]. let b:f32[] = add a a in (b,) }
    """
    jaxpr, consts = build(lambda *tracers: list(fun(*tracers)), avals, name or getattr(fun, "__name__", ""))
    return ClosedJaxpr(jaxpr, consts)


class Unknown(NamedTuple):
    """A value of which only the type is known, `aval`; `trace_partly` takes and returns such values.

    >>> from xlamini import extend
    >>> trace_partly(lambda x, y: [x + y], [1.0, Unknown(extend.ShapedArray((2,), "float32"))]).outs
    [Unknown(aval=ShapedArray(float32[2]))]
    """

    aval: ShapedArray


class PartialTrace(NamedTuple):
    """A partly known call: `outs` has values, and `Unknown`s, which `jaxpr` computes of the unknown arguments.

    The values that `jaxpr` captures, its `consts`, are what the known part hands to the unknown one.

    >>> from xlamini import extend
    >>> x = Unknown(extend.ShapedArray((), "float32"))
    >>> jaxpr, consts, outs = trace_partly(lambda w, x: [jnp.exp(w) * x], [0.0, x])
    >>> extend.eval_jaxpr(jaxpr, consts, 5.0)
    [Array(5., dtype=float32)]
    """

    jaxpr: Jaxpr
    consts: list[Any]
    outs: list[Any]


def trace_partly(
    fun: Callable[..., Sequence[Any]], args: Sequence[Any], unknown_outs: bool | Sequence[bool] = False
) -> PartialTrace:
    """Call a function of flat values, some of them `Unknown`: what depends on none of these is computed now.

    Results marked by `unknown_outs` are made unknown, even if they are known.

    >>> from xlamini import extend
    >>> known = trace_partly(lambda x, y: [2 * x, x * y], [3.0, Unknown(extend.ShapedArray((), "float32"))])
    >>> known.outs
    [6.0, Unknown(aval=ShapedArray(float32[]))]
    >>> known.jaxpr
    { lambda ; a:f32[]. let b:f32[] = mul 3.0:f32[] a in (b,) }
    """
    builder = PartialBuilder("partial")
    with active(builder):
        given = [builder.input(x.aval) if isinstance(x, Unknown) else x for x in args]
        outs = list(fun(*given))
        marked = [unknown_outs] * len(outs) if isinstance(unknown_outs, bool) else unknown_outs
        mask = [m or builder.owns([x]) for x, m in zip(outs, marked, strict=True)]
        kept = [x for x, is_unknown in zip(outs, mask, strict=True) if is_unknown]
        jaxpr, consts = builder.finish(kept)
    unknowns = iter([Unknown(v.aval) for v in jaxpr.outvars])
    found = [next(unknowns) if is_unknown else builder.outside(x) for x, is_unknown in zip(outs, mask, strict=True)]
    return PartialTrace(jaxpr, consts, found)


class PartialBuilder(Builder):
    """Keeps the equations that depend on its inputs; the others go to the trace around it, or are computed.

    An equation that holds programs, such as a call, is parted in two if only some of its operands are unknown.
    """

    __slots__ = ("parting",)

    def __init__(self, name: str):
        super().__init__(name)
        self.parting: bool = False

    def owns(self, operands: Values) -> bool:
        """Whether one of the values depends on an unknown input."""
        return any(type(x) is Tracer and x.builder is self and type(x.variable) is Var for x in operands)

    def outside(self, x: Any) -> Any:
        """A value that depends on no unknown input, for the trace around this one."""
        return as_value(x.variable) if type(x) is Tracer and x.builder is self else as_value(x)

    def emit(self, primitive: Any, operands: Values, params: Params) -> Any:
        if not self.owns(operands):
            with active(self.parent):
                return primitive.bind(*map(self.outside, operands), **params)
        unknown = [self.owns([x]) for x in operands]
        if further(primitive, "partial_eval") and not all(unknown) and not self.parting:
            return self._partition(primitive, unknown, operands, params)
        return Builder.emit(self, primitive, operands, params)

    def _partition(self, primitive: Any, unknown: Sequence[bool], operands: Values, params: Params) -> Any:
        self.parting = True
        try:
            return primitive.partial_eval(unknown, as_values(operands), **params)
        finally:
            self.parting = False

    def replay(self, eqn: Equation, operands: Values) -> list[Any]:
        out = self.emit(eqn.primitive, operands, eqn.params)
        return list(out) if eqn.primitive.multiple_results else [out]

    def inline(self, jaxpr: Jaxpr, operands: Values, provenance: Any = None) -> list[Any]:
        env = bound(jaxpr, operands)
        for eqn in jaxpr.eqns:
            env.update(zip(eqn.outvars, self.replay(eqn, read(env, eqn.invars)), strict=True))
        return read(env, jaxpr.outvars)
