"""Cost analysis of a compiled program: XLA's estimate, or a count of its equations."""
from __future__ import annotations

from xlamini.core import Jaxpr, close_over
from xlamini.core.errors import JaxRuntimeError
from xlamini.interpreters.dce import dce
from xlamini.interpreters.expand import expand
from xlamini.interpreters.physical import physical
from xlamini.runtime.executable import CompiledModule
from xlamini.staging.call.higher_order import cost_of

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
    cost = cost_of(needed(jaxpr))
    return CostAnalysis({"flops": float(cost.flops), "bytes accessed": float(cost.bytes)}, "xlamini")


def needed(jaxpr: Jaxpr) -> Jaxpr:
    """The program as it is lowered: expanded, without random keys and dead equations."""
    return dce(physical(close_over(expand(jaxpr))), (True,) * len(jaxpr.outvars))[0]
