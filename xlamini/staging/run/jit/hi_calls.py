"""Calls of jitted functions with values of users' types: their plan and trace in terms of arrays."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import flatten_from_user, unflatten
from xlamini.core.program.hi_types import HiAval, has_hi, lo_types
from xlamini.core.pytree import structure
from xlamini.staging.compile.pipeline import in_arrays
from xlamini.staging.run.jit.call_plan import CallPlan
from xlamini.staging.trace.arguments import ArgNames
from xlamini.staging.trace.hi_arguments import LoweredValue, lower_hi_values
from xlamini.staging.trace.tracing import Trace


def takes_or_returns_values(traced: Trace) -> bool:
    """Whether a program has values of users' types among its inputs and results."""
    return has_hi(traced.jaxpr.in_avals) or has_hi(traced.jaxpr.out_avals)


def plan_in_arrays(plan: CallPlan, fun: Callable[..., Any]) -> CallPlan:
    """The same call with arrays in place of values."""
    tree = lower_hi_values(unflatten(plan.tree, plan.leaves))
    leaves, treedef = flatten_from_user(tree)
    avals = [lo for aval in plan.avals for lo in lo_types(aval)]
    pairs = zip(plan.in_shardings, plan.avals, strict=True) if plan.in_shardings else ()
    shardings = [s for s, aval in pairs for _ in lo_types(aval)]
    names = ArgNames(fun, treedef, plan.positions)
    return plan._replace(leaves=leaves, tree=treedef, names=names, avals=avals, in_shardings=shardings)


def trace_in_arrays(traced: Trace, names: Sequence[str]) -> Trace:
    """The trace of a program of arrays, in terms of primitives that are lowered; `names` are those of its arguments."""
    jaxpr, captured = in_arrays(traced.jaxpr, traced.captured)
    out_tree = structure(unflatten(traced.out_tree, list(map(_numbered, traced.jaxpr.out_avals))))
    return traced._replace(jaxpr=jaxpr, captured=captured, out_tree=out_tree, names=names)


def _numbered(aval: Any) -> Any:
    return LoweredValue(aval.ty, range(len(lo_types(aval)))) if type(aval) is HiAval else 0
