"""The plan of one call of a jitted function, and types among its arguments."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from xlamini.core import Avals, Values, tree_map
from xlamini.staging.compile.pipeline import needed
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.staging.trace.static_args import StaticArgs
from xlamini.staging.trace.tracing import Trace

if TYPE_CHECKING:
    from xlamini.staging.compile.ledger import Compilation


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


def with_values_for_types(args: Values, kwargs: dict[str, Any], plan: CallPlan, traced: Trace) -> Any:
    """The arguments with zeros for types, whose shapes the function asked for; None if it reads a value of one."""
    used = needed(traced.jaxpr).used_inputs[len(traced.captured) :]
    if any(u and type(x) is ShapeDtypeStruct for x, u in zip(plan.leaves, used, strict=True)):
        return None
    return tree_map(_zeros_of_type, (args, kwargs))


def _zeros_of_type(x: Any) -> Any:
    """An array of zeros that takes no memory; another value as it is."""
    return np.broadcast_to(np.zeros((), x.dtype), x.shape) if type(x) is ShapeDtypeStruct else x
