"""The arguments `in_axes` and `out_axes` of vmap and pmap: validated and expanded to one axis per leaf."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import Avals, ShapedArray, flatten
from xlamini.core.program.hi_types import HiAval
from xlamini.core.pytree import PyTreeDef, flatten_axes, treedef_children, unflatten


def axis_leaves(
    what: str,
    axes: Any,
    tree: PyTreeDef,
    kwargs: dict[str, Any] | None,
    avals: Avals,
    names: Sequence[str] | None,
    fun_name: str,
    caller: str = "vmap",
) -> list[int | None]:
    """One nonnegative axis (or None) per leaf, from a pytree of axes that is a prefix of the arguments or outputs.

    `tree` is their structure. No node of a user's class is made of types here: it may check its fields.
    """
    count = len(treedef_children(tree)) if what == "in_axes" else 0
    if what == "in_axes" and isinstance(axes, tuple) and len(axes) != count:
        raise ValueError(
            f"{caller}: in_axes has {len(axes)} entries but {fun_name} was called with {count} "
            f"positional arguments: {axes!r}"
        )
    names_of_trees = (what, f"the {_side(what)} of {fun_name}")
    leaves = flatten_axes(caller, axes, tree, names_of_trees)
    leaves += [0] * len(flatten(kwargs)[0]) if kwargs else []
    pairs = enumerate(zip(leaves, avals, strict=True))
    axes_of_leaves = [_axis(f"{caller}: {what}", d, a, i, names, fun_name) for i, (d, a) in pairs]
    if any(axes_of_leaves):
        _check_containers(f"{caller}: {what}", tree, avals, axes_of_leaves)
    return axes_of_leaves


def _check_containers(what: str, tree: PyTreeDef, avals: Avals, axes: Sequence[int | None]) -> None:
    """Let the containers that restrict the axes along which they are mapped check them, by `check_mapped`."""
    node = tree.node_data()
    if node is not None and hasattr(node[0], "check_mapped"):
        unflatten(tree, avals).check_mapped(what, axes)
        return
    start = 0
    for child in treedef_children(tree):
        own = slice(start, start := start + child.num_leaves)
        _check_containers(what, child, avals[own], axes[own])


def _side(what: str) -> str:
    return "arguments" if what == "in_axes" else "output"


def _axis(
    what: str, dim: Any, aval: ShapedArray, index: int, names: Sequence[str] | None, fun_name: str
) -> int | None:
    if dim is None:
        return None
    if type(aval) is HiAval and not isinstance(dim, int):
        return dim
    # An output gains the axis, an input has it already.
    rank = len(aval.shape) + what.endswith("out_axes")
    if isinstance(dim, int) and -rank <= dim < rank:
        return dim % rank
    leaf = names[index] if names is not None else f"output {index}"
    if not isinstance(dim, int):
        raise TypeError(f"{what} must be ints, None or trees of them, got {dim!r} for {leaf} of {fun_name}")
    raise ValueError(
        f"{what} is {dim} for {leaf} of {fun_name}, which is {aval.str_short(short_dtypes=False)}"
        + (f" and has axes 0 to {rank - 1}" if rank else " and has no axis to map; use None")
    )


def unbatched_aval(aval: ShapedArray, dim: int | None, size: int | None = None) -> ShapedArray:
    """The aval of one example, of `size`."""
    if type(aval) is HiAval and dim is not None:
        return aval.without(dim, size)
    return aval if dim is None else aval.without(dim)
