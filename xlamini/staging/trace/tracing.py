"""Trace a user's function of pytrees into a jaxpr of flat values."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xlamini.core.avals import ShapedArray
from xlamini.core.jaxpr import Jaxpr, Literal, close_over
from xlamini.core.pytree import flatten_from_user, unflatten
from xlamini.core.tracer import Tracer, build, state
from xlamini.runtime.to_device import device_put_value
from xlamini.staging.trace.arguments import ArgNames, check_outputs, name_of
from xlamini.staging.trace.trace_cache import equal_trace


class Trace(NamedTuple):
    """What tracing found: the jaxpr, whose first inputs are the captured values; these; and the output's tree.

    `builder` made the jaxpr. It knows the numbers that Python may ask for, as long as it is kept.
    """

    jaxpr: Jaxpr
    captured: list[Any]
    out_tree: Any
    names: Sequence[str]
    builder: Any = None


def trace(
    fun: Callable[..., Any],
    in_tree: Any,
    avals: Sequence[ShapedArray],
    values: Sequence[Any] | None = None,
    names: Sequence[str] | None = None,
    name: str | None = None,
    reuse_equal: bool = False,
) -> Trace:
    """Trace `fun(*args, **kwargs)` for leaves of these types; `in_tree` is the tree of `(args, kwargs)`.

    `values` lets Python control flow ask for numbers; None for a leaf that has none. `reuse_equal`
    gives the jaxpr of an earlier trace that is equal: it pays where each call of a transformation traces again.
    """
    out_tree: Any = None
    builder: Any = None
    fun_name = name_of(fun) if name is None else name
    names = ArgNames(fun, in_tree) if names is None else names

    def flat(*tracers: Any) -> Sequence[Any]:
        nonlocal out_tree, builder
        builder = state.builder
        args, kwargs = unflatten(in_tree, tracers)
        leaves, out_tree = flatten_from_user(fun(*args, **kwargs))
        check_outputs(leaves, out_tree, fun_name)
        return leaves

    jaxpr, captured = build(flat, avals, fun_name, names, values)
    closed = equal_trace(close_over(jaxpr)) if reuse_equal else close_over(jaxpr)
    return Trace(closed, captured, out_tree, names, builder)


def rebuilt(tree: Any, leaves: Sequence[Any]) -> Any:
    """What the user gets: the leaves as a tree, with arrays or tracers in place of the literals among them."""
    return unflatten(tree, [visible(x) if type(x) is Literal else x for x in leaves])


def visible(literal: Literal) -> Any:
    """A literal as a user may see it: as an array, or while tracing as a traced value."""
    builder = state.builder
    if builder is None:
        return device_put_value(literal.val, aval=literal.aval)
    return Tracer(builder, literal, literal.aval)
