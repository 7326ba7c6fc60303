"""One tree laid over another: its leaves meet the subtrees at the same places.

So `tree.map` finds the leaves of its further trees, and `in_axes` its arguments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core.pytree.diff import IsLeaf, example_of, first_difference
from xlamini.core.pytree.flattening import flatten, flatten_up_to
from xlamini.core.pytree.nodes import PyTreeDef

Names = tuple[str, str]


def columns(
    treedef: PyTreeDef, tree: Any, rest: Sequence[Any], is_leaf: IsLeaf | None, caller: str
) -> list[list[Any]]:
    """The subtrees of each tree of `rest` at the leaves of `tree`."""
    found = []
    for i, other in enumerate(rest):
        try:
            found.append(flatten_up_to(treedef, other))
        except ValueError:
            names = ("tree", f"rest[{i}]")
            raise mismatch(caller, tree, other, names, is_leaf) from None
    return found


def mismatch(
    caller: str, tree: Any, other: Any, names: Names, is_leaf: IsLeaf | None = None
) -> ValueError:
    where = first_difference(tree, other, names, prefix=True, is_leaf=is_leaf)
    return ValueError(f"{caller}: {where or 'the trees differ'}; give trees of the same structure")


def broadcast_prefix(
    prefix_tree: Any,
    full_tree: Any,
    is_leaf: IsLeaf | None = None,
    *,
    names: Names = ("prefix_tree", "full_tree"),
    caller: str = "tree.broadcast",
) -> list[Any]:
    """The leaves of a prefix tree, each as often as its subtree of the full tree has leaves."""
    leaves, treedef = flatten(prefix_tree, is_leaf)
    try:
        subtrees = flatten_up_to(treedef, full_tree)
    except ValueError:
        raise mismatch(caller, prefix_tree, full_tree, names, is_leaf) from None
    repeated: list[Any] = []
    for leaf, subtree in zip(leaves, subtrees, strict=True):
        repeated.extend([leaf] * _structure(subtree).num_leaves)
    return repeated


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: IsLeaf | None = None) -> Any:
    """A tree like `full_tree` with the leaves of its prefix `prefix_tree`.

    >>> tree_broadcast({"a": 1, "b": 2}, {"a": [0, 0], "b": 0})
    {'a': [1, 1], 'b': 2}
    """
    leaves = broadcast_prefix(prefix_tree, full_tree, is_leaf)
    return _structure(full_tree).unflatten(leaves)


def flatten_axes(
    caller: str, axes: Any, treedef: PyTreeDef, names: Names = ("in_axes", "args")
) -> list[Any]:
    """The entries of a prefix tree such as `in_axes`, one for each leaf; None counts as an entry.

    >>> flatten_axes("vmap", (0, None), _structure((1, [2, 3])))
    [0, None, None]
    """
    if axes is None or isinstance(axes, int):
        return [axes] * treedef.num_leaves
    full_tree = example_of(treedef)
    return broadcast_prefix(axes, full_tree, _is_none, names=names, caller=caller)


def _is_none(x: Any) -> bool:
    return x is None


def _structure(tree: Any) -> PyTreeDef:
    return flatten(tree)[1]
