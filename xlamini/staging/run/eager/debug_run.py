"""Runs of a jitted function under the flags that look at them: `debug_key_reuse`, `debug_nans` and `debug_infs`."""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xlamini.core import Values, aval_of
from xlamini.core.errors.frames import is_own
from xlamini.core.flags.jax_flags import debug_infs, debug_nans
from xlamini.staging.compile.key_reuse import run_on_keys
from xlamini.staging.run.diagnostics.bad_values import check_results
from xlamini.staging.run.jit.call_plan import CallPlan
from xlamini.staging.trace.tracing import Trace

if TYPE_CHECKING:
    from xlamini.staging.run.jit.jitted_function import Jitted


def debugged(jitted: Jitted, traced: Trace, plan: CallPlan, run: Callable[[], Values]) -> Values:
    """The outputs of a run, whose keys and results are looked at under the flags that say so."""
    operands = [*traced.captured, *plan.leaves]
    outs = run_on_keys(jitted.name, traced.jaxpr, operands, run)
    if debug_nans.value or debug_infs.value:
        names = [*(f"a captured array, {aval_of(x).str_short()}" for x in traced.captured), *plan.names]
        check_results(traced.jaxpr, operands, outs, names, is_own(jitted.fun))
    return outs
