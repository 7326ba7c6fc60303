"""The orders of a call's arguments and results in memory: as the arguments lie, and as `jit` was asked for them."""
from __future__ import annotations

from typing import Any

from xlamini.core import Avals, flatten_axes
from xlamini.interpreters.physical import is_extended
from xlamini.runtime import ArrayImpl
from xlamini.runtime.layout import Format, Order, order_asked, order_of, use
from xlamini.staging.compile.lowered_program import Orders
from xlamini.staging.run.call_plan import CallPlan
from xlamini.staging.run.jit_options import Options
from xlamini.staging.trace.tracing import Trace


def orders_of_call(options: Options, plan: CallPlan, traced: Trace) -> Orders | None:
    """The orders that the program of a call has; None if all are row-major."""
    ins = _asked("in_shardings", options.in_shardings and (options.in_shardings, None), plan.tree, "args", plan.avals)
    outs = _asked("out_shardings", options.out_shardings, traced.out_tree, "output", traced.jaxpr.out_avals)
    if not (ins or outs or use.any_other):
        return None
    captured = tuple(map(_order_of, traced.captured))
    leaves = [_order_of(x) for x in plan.leaves]
    pairs = zip(ins, leaves, strict=True) if ins else ()
    asked = [order if is_asked else found for (order, is_asked), found in pairs] or leaves
    given = [order for order, _ in outs] or [None] * len(traced.jaxpr.out_avals)
    return Orders((*captured, *asked), tuple(given)) if any(captured) or any(asked) or any(given) else None


def _order_of(x: Any) -> Order:
    return order_of(x) if use.any_other and isinstance(x, ArrayImpl) else None


def _asked(name: str, places: Any, tree: Any, of: str, avals: Avals) -> list[tuple[Order, bool]]:
    """For each leaf the order that jit's parameter asks for, and whether it does; empty if no format has a layout."""
    if places is None:
        return []
    formats = flatten_axes("jit", places, tree, (name, of))
    if not any(isinstance(x, Format) and x.layout is not None for x in formats):
        return []
    return [_of_leaf(name, x, aval) for x, aval in zip(formats, avals, strict=True)]


def _of_leaf(name: str, format: Any, aval: Any) -> tuple[Order, bool]:
    order = order_asked(f"jit: {name} has", format, aval.ndim)
    if isinstance(order, tuple) and is_extended(aval):
        raise TypeError(f"jit: {name} has {format.layout} for keys, whose words have no order; leave the layout open")
    return order, isinstance(format, Format) and format.layout is not None
