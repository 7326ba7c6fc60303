"""The methods of a jitted function that count what a call costs, before anything is compiled."""
from __future__ import annotations

import dataclasses
import operator
from typing import TYPE_CHECKING, Any

from xlamini.core import flatten, unflatten
from xlamini.core.errors import JaxRuntimeError

if TYPE_CHECKING:
    from xlamini.runtime.targets.topology import Target
    from xlamini.staging.aot.stages import Traced
    from xlamini.staging.compile.cost_report import CostReport
    from xlamini.staging.compile.memory_plan import MemoryPlan


class Estimated:
    """Mixin of a jitted function, which is traced for them."""

    def traced(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace for arguments of these types."""
        raise NotImplementedError

    def cost(self, *args: Any, **kwargs: Any) -> CostReport:
        """The flops and bytes of a call with arguments of these types, by the user's line."""
        return self.traced(*args, **kwargs).cost()

    def memory_plan(self, *args: Any, **kwargs: Any) -> MemoryPlan:
        """The memory that a call with arguments of these types will need, and what is held at the peak."""

        def peak_of(batch: int, size: int, target: Target | None) -> int:
            from xlamini.staging.aot.estimates import with_leading_dimension
            from xlamini.staging.compile.memory_plan import TOO_LARGE

            leaves, tree = flatten((args, kwargs))
            resized = [with_leading_dimension(batch, size, x) for x in leaves]
            if all(map(operator.is_, leaves, resized)):
                raise ValueError(f"largest: no argument has a leading dimension batch={batch}; give one that some have")
            sized = unflatten(tree, resized)
            try:
                return self.traced(*sized[0], **sized[1]).memory_plan(target=target).peak
            except JaxRuntimeError as error:
                if "RESOURCE_EXHAUSTED" not in str(error):
                    raise
                return TOO_LARGE

        return dataclasses.replace(self.traced(*args, **kwargs).memory_plan(), peak_of=peak_of)
