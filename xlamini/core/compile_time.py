"""ensure_compile_time_eval: eager evaluation in the middle of a trace."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from xlamini.core.avals import Params, Values
from xlamini.core.selective_builder import SelectiveBuilder
from xlamini.core.state import state
from xlamini.core.tracer import Tracer, active


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Evaluate operations now, while a function is traced: their results are arrays, with numbers to branch on.

    An operation on a traced value has no number yet: it is traced, as outside. Also a decorator.

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
    with active(AtOnce("compile_time")):
        yield


class AtOnce(SelectiveBuilder):
    """Evaluates each equation on known values, and passes those on traced values to the trace around it."""

    __slots__ = ()

    def emit(self, primitive: Any, operands: Values, params: Params) -> Any:
        values = [x.variable if type(x) is Tracer and x.builder is self else x for x in operands]  # its own are literals
        is_traced = any(type(x) is Tracer for x in values)
        with active(self.parent if is_traced else None):
            return primitive.bind(*values, **params)
