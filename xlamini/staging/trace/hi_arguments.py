"""Values of users' types in trees of arguments and results: a node `LoweredValue` has the arrays that a value is made
of.

A lowered program takes and returns such arrays, in trees with these nodes.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import ShapedArray, aval_of, example_of, flatten, flatten_from_user, unflatten
from xlamini.core.program.hi_types import as_aval, is_hi_type, is_hi_value, lo_types, lowered
from xlamini.core.pytree import SequenceKey, register_pytree_node
from xlamini.runtime import NamedSharding
from xlamini.runtime.meshes.current_mesh import get_mesh
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct


class LoweredValue:
    """The arrays of a value of the user's type `ty`, or something else for each of them, such as its type."""

    __slots__ = ("parts", "ty")
    parts: tuple[Any, ...]
    ty: Any

    def __init__(self, ty: Any, parts: Sequence[Any]):
        self.ty, self.parts = ty, tuple(parts)

    def __repr__(self) -> str:
        return f"ArraysOf({self.ty}: {', '.join(map(repr, self.parts))})"


register_pytree_node(
    LoweredValue,
    lambda node: (node.parts, node.ty),
    LoweredValue,
    lambda node: (tuple((SequenceKey(i), x) for i, x in enumerate(node.parts)), node.ty),
)


def is_arrays_of(x: Any) -> bool:
    """Whether this node stands for a value of a user's type."""
    return type(x) is LoweredValue


def lower_hi_values(tree: Any) -> Any:
    """A tree with the arrays of each value of a user's type in its place, or their types in that of a type."""
    leaves, treedef = flatten_from_user(tree)
    return unflatten(treedef, list(map(_lower_hi_value, leaves)))


def _lower_hi_value(x: Any) -> Any:
    if is_hi_type(x):
        return LoweredValue(x, list(map(_described, lo_types(as_aval(x)))))
    if not is_hi_value(x):
        return x
    aval: Any = aval_of(x)
    return LoweredValue(aval.ty, lowered([aval], [x]))


def _described(lo: ShapedArray) -> ShapeDtypeStruct:
    """An array of this type, split as it says over the devices of the current mesh."""
    here, split = get_mesh(), lo.explicit_sharding
    placed = None if split is None or here.abstract_mesh != split.mesh else NamedSharding(here, split.spec)
    return ShapeDtypeStruct(lo.shape, lo.dtype, sharding=placed, weak_type=lo.weak_type)


def with_values(tree: Any) -> Any:
    """A tree with the values again."""
    nodes, treedef = flatten(tree, is_arrays_of)
    return unflatten(treedef, [x.ty.raise_val(*x.parts) if is_arrays_of(x) else x for x in nodes])


def has_arrays_of(treedef: Any) -> bool:
    """Whether a tree of this structure has nodes that stand for values of users' types."""
    return any(map(is_arrays_of, flatten(example_of(treedef), is_arrays_of)[0]))
