"""ensure_compile_time_eval: eager evaluation in the middle of a trace."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from xlamini.core.state import state
from xlamini.core.tracer import active


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Evaluate operations now, while a function is traced: their results are arrays, with numbers to branch on.

    Inside, only values that are known while tracing can be used; a traced value is an UnexpectedTracerError. Also a
    decorator.

    >>> @xlamini.jit
    ... def steps(x):
    ...     with xlamini.ensure_compile_time_eval():
    ...         count = int(xlamini.numpy.ceil(xlamini.numpy.log2(10)))
    ...     return x * count
    >>> steps(1.0)
    Array(4., dtype=float32, weak_type=True)
    """
    before = state.interrupted
    state.interrupted = state.builder or before
    try:
        with active(None):
            yield
    finally:
        state.interrupted = before
