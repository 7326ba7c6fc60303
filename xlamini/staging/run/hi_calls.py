"""Calls of jitted functions with values of users' types: the program takes and returns the arrays they are made of.

In the tree of arguments, and in that of results, a node `ArraysOf` with the arrays as children stands for each value.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import ShapedArray, aval_of, close_over, flatten, flatten_from_user, unflatten
from xlamini.core.hi_types import HiAval, as_aval, has_hi, is_hi_type, is_hi_value, lo_types, lowered
from xlamini.core.pytree import SequenceKey, register_pytree_node, structure
from xlamini.interpreters.expand import expand
from xlamini.runtime import NamedSharding
from xlamini.runtime.meshes.current_mesh import get_mesh
from xlamini.staging.run.call_plan import CallPlan
from xlamini.staging.trace.arguments import ArgNames
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.staging.trace.tracing import Trace


class ArraysOf:
    """The arrays of a value of the user's type `ty`, or something else for each of them, such as its type."""

    __slots__ = ("parts", "ty")

    def __init__(self, ty: Any, parts: Sequence[Any]):
        self.ty, self.parts = ty, tuple(parts)

    def __repr__(self) -> str:
        return f"ArraysOf({self.ty}: {', '.join(map(repr, self.parts))})"


register_pytree_node(
    ArraysOf,
    lambda node: (node.parts, node.ty),
    ArraysOf,
    lambda node: (tuple((SequenceKey(i), x) for i, x in enumerate(node.parts)), node.ty),
)


def is_arrays_of(x: Any) -> bool:
    """Whether this node stands for a value of a user's type."""
    return type(x) is ArraysOf


def in_arrays(tree: Any) -> Any:
    """A tree with the arrays of each value of a user's type in its place, or their types in that of a type."""
    leaves, treedef = flatten_from_user(tree)
    return unflatten(treedef, list(map(_in_arrays, leaves)))


def _in_arrays(x: Any) -> Any:
    if is_hi_type(x):
        return ArraysOf(x, list(map(_described, lo_types(as_aval(x)))))
    if not is_hi_value(x):
        return x
    aval: Any = aval_of(x)
    return ArraysOf(aval.ty, lowered([aval], [x]))


def _described(lo: ShapedArray) -> ShapeDtypeStruct:
    """An array of this type, split as it says over the devices of the current mesh."""
    here, split = get_mesh(), lo.split
    placed = None if split is None or here.abstract_mesh != split.mesh else NamedSharding(here, split.spec)
    return ShapeDtypeStruct(lo.shape, lo.dtype, sharding=placed, weak_type=lo.weak_type)


def with_values(tree: Any) -> Any:
    """A tree with the values again."""
    nodes, treedef = flatten(tree, is_arrays_of)
    return unflatten(treedef, [x.ty.raise_val(*x.parts) if is_arrays_of(x) else x for x in nodes])


def has_arrays_of(treedef: Any) -> bool:
    """Whether a tree of this structure has nodes that stand for values of users' types."""
    return any(map(is_arrays_of, flatten(unflatten(treedef, range(treedef.num_leaves)), is_arrays_of)[0]))


def takes_or_returns_values(traced: Trace) -> bool:
    """Whether a program has values of users' types among its inputs and results."""
    return has_hi(traced.jaxpr.in_avals) or has_hi(traced.jaxpr.out_avals)


def plan_in_arrays(plan: CallPlan, fun: Callable[..., Any]) -> CallPlan:
    """The same call with arrays in place of values."""
    tree = in_arrays(unflatten(plan.tree, plan.leaves))
    leaves, treedef = flatten_from_user(tree)
    avals = [lo for aval in plan.avals for lo in lo_types(aval)]
    pairs = zip(plan.in_shardings, plan.avals, strict=True) if plan.in_shardings else ()
    shardings = [s for s, aval in pairs for _ in lo_types(aval)]
    names = ArgNames(fun, treedef, plan.positions)
    return plan._replace(leaves=leaves, tree=treedef, names=names, avals=avals, in_shardings=shardings)


def trace_in_arrays(traced: Trace, names: Sequence[str]) -> Trace:
    """The trace of a program of arrays, in terms of primitives that are lowered; `names` are those of its arguments."""
    whole = expand(traced.jaxpr)
    count = len(traced.captured)
    captured = [*whole.consts, *lowered(traced.jaxpr.in_avals[:count], traced.captured)]
    out_tree = structure(unflatten(traced.out_tree, list(map(_numbered, traced.jaxpr.out_avals))))
    return traced._replace(jaxpr=close_over(whole), captured=captured, out_tree=out_tree, names=names)


def _numbered(aval: Any) -> Any:
    return ArraysOf(aval.ty, range(len(lo_types(aval)))) if type(aval) is HiAval else 0
