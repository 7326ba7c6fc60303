"""The plan of one call of a jitted function; types, and values of users' types, among its arguments."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from xlamini.core import Avals, Values, flatten_from_user, tree_map, unflatten
from xlamini.core.errors.frames import is_own
from xlamini.core.flags import config
from xlamini.core.program.hi_types import HiAval, has_hi, lo_types
from xlamini.core.program.jaxpr import is_expanded
from xlamini.core.pytree import structure
from xlamini.core.tracing.state import state
from xlamini.staging.compile.pipeline import expanded, in_arrays, needed
from xlamini.staging.run.jit.jit_options import Options
from xlamini.staging.trace.arguments import ArgNames, avals_of, has_refs
from xlamini.staging.trace.hi_arguments import LoweredValue, lower_hi_values
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.staging.trace.sharding_prefix import flatten_shardings, resharded_avals
from xlamini.staging.trace.static_args import StaticArgs, check_hashable, take_out
from xlamini.staging.trace.tracing import Trace

if TYPE_CHECKING:
    from xlamini.staging.compile.ledger import Compilation


_OR_STATIC = ", or mark it static with static_argnames or static_argnums"
"""Further advice for an argument that is no array; the library's own functions have their static ones."""


class CallPlan(NamedTuple):
    """One call of a jitted function: its arguments as leaves, and what the options ask for them.

    Made once, at the top, and handed to tracing, placement, lowering and the program, so that none of them asks again.
    """

    leaves: Values
    tree: Any
    names: Sequence[str]
    avals: Avals
    statics: StaticArgs | None
    """The static arguments, taken out; None for a function without."""
    positions: Sequence[int] | None
    """Where the remaining positional arguments were in the user's call; None if none was taken out."""
    in_shardings: Sequence[Any]
    """The sharding asked for each leaf, None for any; empty if nothing was asked."""
    entries: list[Compilation]
    """The entry of this call in the ledger, if it was traced and is yet to be compiled."""
    has_refs: bool = False
    """Whether a leaf is a ref; then only this field counts."""

    def trace_key(self) -> tuple[Any, ...]:
        """What the trace of the call depends on."""
        statics = None if self.statics is None else self.statics.key
        return self.tree, tuple(self.avals), statics, config.trace_context_key(), state.axes


def plan_call(fun: Callable[..., Any], name: str, options: Options, args: Values, kwargs: dict[str, Any]) -> CallPlan:
    """The plan of a call of a function with these arguments."""
    statics, positions, dynamic, keywords = None, None, args, kwargs
    if options.static.nums or options.static.names:
        statics, dynamic, keywords = take_out(options.static, args, kwargs)
        check_hashable(fun, statics)
        positions = statics.positions_of_others(len(dynamic))
    leaves, tree = flatten_from_user((tuple(dynamic), keywords))
    if has_refs(leaves):
        return CallPlan(leaves, tree, (), (), statics, positions, (), [], True)
    names = ArgNames(fun, tree, positions)
    avals, shardings = avals_of(leaves, names, name, "" if is_own(fun) else _OR_STATIC), ()
    if options.in_shardings is not None:
        shardings = flatten_shardings("in_shardings", (options.in_shardings, None), tree, "args", avals)
        avals = resharded_avals(avals, shardings)
    return CallPlan(leaves, tree, names, avals, statics, positions, shardings, [])


def with_values_for_types(args: Values, kwargs: dict[str, Any], plan: CallPlan, traced: Trace) -> Any:
    """The arguments with zeros for types, whose shapes the function asked for; None if it reads a value of one."""
    used = needed(traced.jaxpr).used_inputs[len(traced.captured) :]
    if any(u and type(x) is ShapeDtypeStruct for x, u in zip(plan.leaves, used, strict=True)):
        return None
    return tree_map(_zeros_of_type, (args, kwargs))


def _zeros_of_type(x: Any) -> Any:
    """An array of zeros that takes no memory; another value as it is."""
    return np.broadcast_to(np.zeros((), x.dtype), x.shape) if type(x) is ShapeDtypeStruct else x


# --- values of users' types


def call_in_arrays(fun: Callable[..., Any], plan: CallPlan, traced: Trace) -> tuple[CallPlan, Trace]:
    """A call and its trace, as they are lowered: with the arrays that values of users' types are made of."""
    if is_expanded(traced.jaxpr) or not has_hi([*traced.jaxpr.in_avals, *traced.jaxpr.out_avals]):
        return plan, expanded(traced)
    leaves, tree = flatten_from_user(lower_hi_values(unflatten(plan.tree, plan.leaves)))
    avals = [lo for aval in plan.avals for lo in lo_types(aval)]
    pairs = zip(plan.in_shardings, plan.avals, strict=True) if plan.in_shardings else ()
    shardings = [s for s, aval in pairs for _ in lo_types(aval)]
    names = ArgNames(fun, tree, plan.positions)
    jaxpr, captured = in_arrays(traced.jaxpr, traced.captured)
    out_tree = structure(unflatten(traced.out_tree, list(map(_numbered, traced.jaxpr.out_avals))))
    return (
        plan._replace(leaves=leaves, tree=tree, names=names, avals=avals, in_shardings=shardings),
        traced._replace(jaxpr=jaxpr, captured=captured, out_tree=out_tree, names=names),
    )


def _numbered(aval: Any) -> Any:
    return LoweredValue(aval.ty, range(len(lo_types(aval)))) if type(aval) is HiAval else 0
