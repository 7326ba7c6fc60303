"""jit for functions that are created on every call: their programs are looked up by structure.

`pmap(f)(x)` in a loop creates such a function in each iteration. It is traced every time, and compiled once.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xlamini.core import Values
from xlamini.core.caching.structure import executable_key
from xlamini.core.tracing.state import state
from xlamini.staging.compile.program import Program
from xlamini.staging.run.eager.program_cache import programs
from xlamini.staging.run.jit.call_plan import CallPlan
from xlamini.staging.run.jit.cpp_function import wrapped
from xlamini.staging.run.jit.jit_options import Options
from xlamini.staging.run.jit.jitted_function import Jitted
from xlamini.staging.trace.static_args import Numbers, Selected, check_apart
from xlamini.staging.trace.tracing import Trace


def jit_by_structure(
    fun: Callable[..., Any],
    static_argnums: Numbers = None,
    donate_argnums: Numbers = None,
    instead: Callable[[], Callable[..., Any] | None] = lambda: None,
) -> Any:
    """`jit(fun)` that reuses the program of an earlier function with the same name and equations.

    `instead()` is asked before a call outside of tracing, and may return a function to be called.
    """
    static = Selected("static", fun, static_argnums, None)
    donate = Selected("donate", fun, donate_argnums, None)
    check_apart(fun, static, donate)
    jitted = _JittedByStructure(fun, Options(static, donate))
    jitted.instead = instead
    return wrapped(jitted)


class _JittedByStructure(Jitted):
    instead: Callable[[], Callable[..., Any] | None]

    def _run(self, args: Values, kwargs: dict[str, Any]) -> tuple[Any, Any, bool]:
        other = self.instead() if state.builder is None else None
        return super()._run(args, kwargs) if other is None else (other(*args, **kwargs), None, False)

    def compiled(self, plan: CallPlan, traced: Trace, device: Any) -> Program:
        key = self.program_key(plan, traced, device)._replace(structure=(self.name, executable_key(traced.jaxpr)))
        return programs.get_or_make(key, functools.partial(super().compiled, plan, traced, device))
