"""The type of what `jit` returns, for type checkers."""
from __future__ import annotations

from typing import ParamSpec, Protocol, TypeVar

from xlamini.staging.aot.stages import Wrapped
from xlamini.staging.compile.cost_report import CostReport
from xlamini.staging.compile.memory_plan import MemoryPlan

P = ParamSpec("P")
R = TypeVar("R", covariant=True)


class JitFunction(Wrapped[P, R], Protocol[P, R]):
    """What `jit` returns: a `Wrapped` that also analyses its programs."""

    def cost(self, *args: P.args, **kwargs: P.kwargs) -> CostReport: ...
    def memory_plan(self, *args: P.args, **kwargs: P.kwargs) -> MemoryPlan: ...
