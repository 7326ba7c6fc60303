"""The methods of a jitted function that do not run it: the stages of compilation, what a call costs, the ledger."""
from __future__ import annotations

import dataclasses
import operator
from typing import TYPE_CHECKING, Any

from xlamini.core import flatten, unflatten
from xlamini.core.errors import JaxRuntimeError
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.staging.run.jit.entries import compilations_of

if TYPE_CHECKING:
    from xlamini.runtime.targets.topology import Target
    from xlamini.staging.aot.stages import Lowered, Traced
    from xlamini.staging.compile.cost_report import CostReport
    from xlamini.staging.compile.ledger import Compilations
    from xlamini.staging.compile.memory_plan import MemoryPlan


class Inspectable:
    """Mixin of a jitted function, which is traced for them."""

    @api_boundary
    def traced(self: Any, *args: Any, **kwargs: Any) -> Traced:
        """Trace for arguments of these types (arrays, or anything with shape and dtype)."""
        from xlamini.staging.aot.stages import Traced  # for those who look only
        from xlamini.staging.run.jit.ahead_of_time import ahead_of_time

        ahead = ahead_of_time(self, args, kwargs)
        return Traced(ahead.traced(), ahead)

    @api_boundary
    def lowered(self, *args: Any, **kwargs: Any) -> Lowered:
        """Trace and lower for arguments of these types."""
        return self.traced(*args, **kwargs).lower()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The types of the outputs for arguments of these types."""
        return self.traced(*args, **kwargs).out_info

    def compilations(self: Any) -> Compilations:
        """What the ledger has of functions with this one's code."""
        return compilations_of(self)

    def cost(self, *args: Any, **kwargs: Any) -> CostReport:
        """The flops and bytes of a call with arguments of these types, by the user's line."""
        return self.traced(*args, **kwargs).cost()

    def memory_plan(self, *args: Any, **kwargs: Any) -> MemoryPlan:
        """The memory that a call with arguments of these types will need, and what is held at the peak."""

        def peak_of(batch: int, size: int, target: Target | None) -> int:
            from xlamini.staging.aot.cost_queries import with_leading_dimension
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
