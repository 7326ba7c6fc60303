"""A call of a jitted function that is made while a program is traced: a `jit` equation of it, or run at once."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xlamini.core import Values, active
from xlamini.core.tracing.compile_time import tracers_in
from xlamini.core.tracing.state import state
from xlamini.interpreters.evaluate import evaluate
from xlamini.staging.call.call import jit_p
from xlamini.staging.call.higher_order import names_in
from xlamini.staging.run.jit.call_plan import CallPlan
from xlamini.staging.trace.sharding_prefix import all_moved
from xlamini.staging.trace.tracing import Trace, rebuilt

if TYPE_CHECKING:
    from xlamini.staging.run.jit.jitted_function import Jitted


def while_tracing(jitted: Jitted, traced: Trace, plan: CallPlan, args: Values, kwargs: dict[str, Any]) -> Any:
    """The output of a call that is part of a program, or that runs at once because it depends on known values."""
    if _is_part(traced, plan):
        return rebuilt(traced.out_tree, _staged(jitted, traced, plan))
    with active(None):
        return jitted.function()(*args, **kwargs)


def _is_part(traced: Trace, plan: CallPlan) -> bool:
    if not state.builder.evaluates or traced.jaxpr.effects or (state.axes and names_in(traced.jaxpr)):
        return True
    return bool(tracers_in([*traced.captured, *plan.leaves]))


def _staged(jitted: Jitted, traced: Trace, plan: CallPlan) -> Values:
    """The outputs of the call as part of the program being traced."""
    leaves = all_moved(plan.leaves, plan.in_shardings) if plan.in_shardings else plan.leaves
    operands = [*traced.captured, *leaves]
    if jitted.options.inline:
        outs = evaluate(traced.jaxpr, operands)
    else:
        outs = jit_p.bind(*operands, jaxpr=traced.jaxpr, name=jitted.name)
    shardings = jitted.out_shardings(traced)
    return all_moved(outs, shardings) if shardings else outs
