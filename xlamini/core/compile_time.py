"""ensure_compile_time_eval: eager evaluation in the middle of a trace."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from xlamini.core import hooks
from xlamini.core.avals import Params, Values
from xlamini.core.call_cache import EAGER, repeated
from xlamini.core.jaxpr import Equation, Jaxpr, close_over
from xlamini.core.pytree import tree_leaves
from xlamini.core.state import state
from xlamini.core.tracer import Builder, Tracer, active


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Evaluate operations now, while a function is traced: their results are arrays, with numbers to branch on.

    An operation on a traced value, which has no number yet, becomes part of the traced program as elsewhere. Also a
    decorator.

    >>> @xlamini.jit
    ... def steps(x):
    ...     with xlamini.ensure_compile_time_eval():
    ...         count = int(xlamini.numpy.ceil(xlamini.numpy.log2(10)))
    ...     return x * count
    >>> steps(1.0)
    Array(4., dtype=float32, weak_type=True)
    """
    with active(None if state.builder is None else AtOnce("ensure_compile_time_eval")):
        yield


class AtOnce(Builder):
    """Evaluates what is known; operations on traced values go to the builder around it."""

    __slots__ = ()
    evaluates = True

    def around(self, values: Values) -> Any:
        """The builder that traces an operation on these values; None if all are known."""
        return self.parent if any(type(x) is Tracer for x in values) else None

    def emit(self, primitive: Any, operands: Values, params: Params) -> Any:
        with active(self.around(operands)):
            return primitive.bind(*operands, **params)

    def replay(self, eqn: Equation, operands: Values) -> list[Any]:
        out = self.emit(eqn.primitive, operands, eqn.params)
        return list(out) if eqn.primitive.multiple_results else [out]

    def inline(self, jaxpr: Jaxpr, operands: Values, provenance: Any = None) -> list[Any]:
        every = [*jaxpr.consts, *operands]
        with active(self.around(every)):
            return hooks.evaluate_jaxpr(close_over(jaxpr), every)

    def call(self, fun: Callable[..., Any], args: Values, kwargs: Mapping[str, Any]) -> Any:
        builder = self.around(tree_leaves((args, kwargs)))
        with active(builder):
            return getattr(fun, EAGER, fun)(*args, **kwargs) if builder is None else repeated(fun, args, kwargs)
