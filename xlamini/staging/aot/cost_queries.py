"""What is counted of a program before it is compiled: its cost by line, and the memory that it will need."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xlamini.runtime.devices.platforms import default_backend
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.staging.trace.tracing import TracedCall

if TYPE_CHECKING:
    from xlamini.runtime.targets.topology import Target
    from xlamini.staging.aot.stages import Compiled
    from xlamini.staging.compile.cost_report import CostReport
    from xlamini.staging.compile.memory_plan import MemoryPlan


class Estimates:
    """Mixin of the stages of compilation."""

    _call: TracedCall

    def cost(self, *, while_trips: int | None = None) -> CostReport:
        """The flops and bytes of a call by the user's line, by named scope and by direction; it prints as a table.

        `while_trips` is the number of iterations to count for each while loop; without it a loop counts as one
        iteration, and the report says so. Raises ValueError for a negative number.
        """
        from xlamini.staging.compile.cost_report import cost_report  # for those who look only

        return cost_report(self._call.name, self._call.trace.jaxpr, while_trips)

    def memory_plan(self, *, target: Target | None = None) -> MemoryPlan:
        """The memory that a call will need on one device, with what is held at the peak.

        `target` is a device that is not here, `xlamini.target("gpu:h200")`; by default it is the default device.
        Nothing is compiled, except for a TPU, whose compiler is asked; it raises JaxRuntimeError for what does not fit.

        >>> xlamini.jit(lambda x: x @ x).trace(xlamini.numpy.ones((8, 8))).memory_plan().peak
        512
        """
        from xlamini.staging.compile.memory_plan import memory_plan, with_bytes_of  # for those who look only

        platform = target.platform if target is not None else default_backend()
        plan = memory_plan(self._call.name, self._call.trace.jaxpr, self._call.donated, platform)
        return plan if platform != "tpu" else with_bytes_of(plan, self._compiled_for(target).memory_analysis())

    def _compiled_for(self, target: Target | None) -> Compiled:
        """The program for a target, or for the default device."""
        raise TypeError(
            "memory_plan: a TPU's compiler is asked, so call it on jit(f).trace(*args), or read memory_analysis()"
        )


def with_leading_dimension(batch: int, size: int, x: Any) -> Any:
    """The type of an argument with the leading dimension `size`, if it has the leading dimension `batch` now."""
    shape = getattr(x, "shape", ())
    if not shape or shape[0] != batch:
        return x
    return ShapeDtypeStruct((size, *shape[1:]), x.dtype, weak_type=getattr(x, "weak_type", False))
