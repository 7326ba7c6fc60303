"""Cost analysis of a compiled program: XLA's estimate, or a count of its equations."""
from __future__ import annotations

from xlamini.core import Jaxpr
from xlamini.core.errors import JaxRuntimeError
from xlamini.runtime.execution.executable import CompiledModule
from xlamini.staging.call.higher_order import cost_of
from xlamini.staging.compile.pipeline import front

SOURCES = (None, "xla", "xlamini")


class CostAnalysis(dict[str, float]):
    """Costs by name; `source` is "xla" for XLA's estimate, "xlamini" for the count of the equations.

    >>> compiled = xlamini.jit(lambda x: x @ x).lower(jnp.ones((4, 4))).compile()
    >>> cost = compiled.cost_analysis("xlamini")
    >>> cost["flops"], cost.source
    (128.0, 'xlamini')
    """

    def __init__(self, costs: dict[str, float], source: str):
        super().__init__(costs)
        self.source = source


def cost_of_program(executable: CompiledModule, jaxpr: Jaxpr, source: str | None = None) -> CostAnalysis:
    """The cost of an executable and the jaxpr it was compiled from; ValueError for an unknown source."""
    if source not in SOURCES:
        raise ValueError(f"cost_analysis: source must be 'xla', 'xlamini' or None, got {source!r}")
    if source != "xlamini":
        try:
            return CostAnalysis(executable.cost_analysis(), "xla")
        except JaxRuntimeError:
            if source == "xla":
                raise
    return counted(jaxpr)


def counted(jaxpr: Jaxpr) -> CostAnalysis:
    """The flops and bytes of all equations, as if XLA fused nothing; a loop's body counts once per iteration."""
    cost = cost_of(front(jaxpr).jaxpr)
    return CostAnalysis({"flops": float(cost.flops), "bytes accessed": float(cost.bytes)}, "xlamini")
