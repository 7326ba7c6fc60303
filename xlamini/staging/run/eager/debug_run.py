"""Runs of a jitted function under the flags that look at them: `debug_key_reuse`, `debug_nans` and `debug_infs`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core import Jaxpr, Values, aval_of, unflatten
from xlamini.core.errors.frames import is_own
from xlamini.core.flags.jax_flags import debug_infs, debug_nans
from xlamini.staging.compile.key_reuse import run_on_keys
from xlamini.staging.compile.program import BoundProgram
from xlamini.staging.run.diagnostics.bad_values import check_results


def debugged(fun: Callable[..., Any], jaxpr: Jaxpr, bound: BoundProgram, leaves: Values) -> Any:
    """The output of a run, whose keys and results are looked at under the flags that say so."""
    operands = [*bound.captured, *leaves]
    outs = run_on_keys(bound.program.name, jaxpr, operands, lambda: bound.outs(leaves))
    if debug_nans.value or debug_infs.value:
        names = [*(f"a captured array, {aval_of(x).str_short()}" for x in bound.captured), *bound.names]
        check_results(jaxpr, operands, outs, names, is_own(fun))
    return unflatten(bound.out_tree, outs)
