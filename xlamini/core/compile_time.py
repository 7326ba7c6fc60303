"""ensure_compile_time_eval: values are computed in the middle of a trace."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from xlamini.core.avals import Params, Values
from xlamini.core.jaxpr import Equation, Jaxpr, Literal
from xlamini.core.state import state
from xlamini.core.tracer import Builder, Tracer, active


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Evaluate operations now, while a function is traced: their results are arrays, with numbers to branch on.

    An operation on a traced value is part of the program as ever. Also a decorator.

    >>> @xlamini.jit
    ... def steps(x):
    ...     with xlamini.ensure_compile_time_eval():
    ...         count = int(xlamini.numpy.ceil(xlamini.numpy.log2(10)))
    ...     return x * count
    >>> steps(1.0)
    Array(4., dtype=float32, weak_type=True)
    """
    if state.builder is None:
        yield
        return
    with active(KnownFirst(state.builder.name)):
        yield


class KnownFirst(Builder):
    """Keeps no equations: those of known operands are evaluated, the others go to the trace around it."""

    __slots__ = ()

    def emit(self, primitive: Any, operands: Values, params: Params) -> Any:
        values = [_number(x) for x in operands]
        traced = any(type(x) is Tracer for x in values)
        with active(self.parent if traced else None):
            return primitive.bind(*values, **params)

    def replay(self, eqn: Equation, operands: Values) -> list[Any]:
        out = self.emit(eqn.primitive, operands, eqn.params)
        return list(out) if eqn.primitive.multiple_results else [out]

    def inline(self, jaxpr: Jaxpr, operands: Sequence[Any], provenance: Any = None) -> list[Any]:
        env: dict[Any, Any] = dict(zip(jaxpr.constvars + jaxpr.invars, [*jaxpr.consts, *operands], strict=True))
        for eqn in jaxpr.eqns:
            outs = self.replay(eqn, [env.get(a, a) for a in eqn.invars])
            env.update(zip(eqn.outvars, outs, strict=True))
        return [env.get(a, a) for a in jaxpr.outvars]


def _number(x: Any) -> Any:
    """The literal of a number that looks like a traced value; any other operand as it is."""
    return x.variable if type(x) is Tracer and type(x.variable) is Literal else x
