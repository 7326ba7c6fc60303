"""The arguments that a pullback of `vjp` stores, as the user sees them: one tree for each argument of the function.

    an array        the pullback reads the argument itself, and stores it
    NotNeeded()     it does not read the argument
    NotSaveable()   it reads the argument, which `vjp(..., saveable_args=...)` left out: assign it before the call
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import ShapedArray, aval_of, flatten, treedef_children
from xlamini.core.program.hi_types import fits
from xlamini.core.pytree import register_static
from xlamini.transforms.derivatives.grad_refs import Marker


@register_static
class NotNeeded(Marker):
    """In the `args_res` of a pullback: it does not read this argument.

    >>> xlamini.vjp(xlamini.numpy.add, 1.0, 2.0)[1].args_res
    [NotNeeded(), NotNeeded()]
    """

    __slots__ = ()


@register_static
class NotSaveable(Marker):
    """In the `args_res` of a pullback: it reads this argument, but `saveable_args` says not to store it.

    >>> _, pullback = xlamini.vjp(lambda x, y: x * y, 2.0, 3.0, saveable_args=(False, True))
    >>> pullback.args_res
    [NotSaveable(), Array(3., dtype=float32, weak_type=True)]
    >>> pullback.args_res[0] = 2.0
    >>> pullback(1.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """

    __slots__ = ()


def as_tuples(tree: Any, leaves: Sequence[Any]) -> Any:
    """Nested tuples of leaves, with the structure of `tree`."""
    if _is_leaf(tree):
        return leaves[0]
    remaining, parts = iter(leaves), treedef_children(tree)
    return tuple(as_tuples(part, [next(remaining) for _ in range(part.num_leaves)]) for part in parts)


def _is_leaf(tree: Any) -> bool:
    return tree.num_nodes == 1 and tree.num_leaves == 1


def bool_leaves(name: str, bools: Any, tree: Any) -> list[bool]:
    """The bool of each leaf of the arguments, from one bool, or a tuple with one part for each child.

    `name` is that of the function and of its argument, for errors: TypeError for anything else, and ValueError for a
    tuple of another length.
    """
    if isinstance(bools, bool):
        return [bools] * tree.num_leaves
    if not isinstance(bools, tuple | list):
        raise TypeError(f"{name} must be a bool or a tuple of them, got {bools!r}")
    parts = treedef_children(tree)
    if len(parts) != len(bools):
        raise ValueError(f"{name} has {len(bools)} entries for {len(parts)} arguments or parts of one")
    return [leaf for pair in zip(bools, parts, strict=True) for leaf in bool_leaves(name, *pair)]


def leaves_of_args(args_res: Sequence[Any], tree: Any, fun_name: str) -> list[Any]:
    """The leaves of an `args_res` that the user may have changed; an argument may have its own containers again."""
    parts = treedef_children(tree)
    if len(args_res) != len(parts):
        raise ValueError(f"vjp: args_res has {len(args_res)} entries, but {fun_name} has {len(parts)} arguments")
    found: list[Any] = []
    for i, (arg, part) in enumerate(zip(args_res, parts, strict=True)):
        leaves = flatten(arg, lambda x: isinstance(x, NotNeeded | NotSaveable))[0]
        if len(leaves) != part.num_leaves:
            raise ValueError(
                f"vjp: args_res[{i}] has {len(leaves)} leaves, but that argument of {fun_name} has {part.num_leaves}"
            )
        found += leaves
    return found


def check_restored(value: Any, aval: ShapedArray, leaf: int, tree: Any, fun_name: str) -> None:
    """ValueError for an argument that is read but not there, TypeError for one of another type."""
    counts = [part.num_leaves for part in treedef_children(tree)]
    arg = next(i for i in range(len(counts)) if leaf < sum(counts[: i + 1]))
    if isinstance(value, NotNeeded | NotSaveable):
        raise ValueError(
            f"vjp: the pullback of {fun_name} reads argument {arg}, which is not stored; assign it before the call: "
            f"pullback.args_res[{arg}] = ..."
        )
    if not fits(aval_of(value), aval):
        raise TypeError(
            f"vjp: {aval_of(value).str_long()} is assigned to args_res[{arg}], but that argument of {fun_name} was "
            f"{aval.str_long()}"
        )
