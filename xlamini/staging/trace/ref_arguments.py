"""Refs among the arguments of a call: their values become arguments, and their final values become results.

A transformation that takes refs opens them, runs the pure form of its function, and stores the final values:

    refs = OpenedRefs("vmap", (args, kwargs))
    with refs.passed():
        out, values = run(pure(f), *refs.args)
    refs.store(values)

In the opened arguments a node `RefArgument` with the value as its child replaces each ref, so that tree prefixes
(`in_axes`, `in_shardings`) still fit, and so that a trace serves all refs of one type.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

from xlamini.core import Cell, Values, flatten, flatten_from_user, unflatten
from xlamini.core.program.mutable_values import cell_of, holder_of
from xlamini.core.program.ref_cells import is_holder, passed_to
from xlamini.core.pytree import GetAttrKey, register_pytree_node, structure
from xlamini.staging.trace.arguments import check_outputs, name_of


class RefArgument:
    """The pytree node in place of a ref, with the value of the ref as its child."""

    __slots__ = ("kind", "value")
    kind: type
    value: Any

    def __init__(self, kind: type, value: Any):
        self.kind, self.value = kind, value


register_pytree_node(
    RefArgument,
    lambda node: ((node.value,), node.kind),
    lambda kind, children: RefArgument(kind, *children),
    lambda node: (((GetAttrKey("value"), node.value),), node.kind),
)


def is_ref_argument(x: Any) -> bool:
    """Whether this node replaces a ref."""
    return type(x) is RefArgument


class OpenedRefs:
    """The refs among the leaves of a tree, and the tree with their values in place of them.

    ValueError if a ref is there twice: which of two final values it should get is not clear.
    """

    cells: list[Cell]
    nodes: list[RefArgument]
    what: str

    def __init__(
        self, what: str, tree: Any, flat: tuple[Values, Any] | None = None, held: Callable[[Cell], Any] = Cell.read
    ):
        """`flat` are the tree's leaves and its treedef, if the caller has them; `held` says what replaces a ref."""
        leaves, treedef = flat or flatten_from_user(tree)
        self.what, self.cells, self.nodes = what, list[Cell](), list[RefArgument]()
        opened = list(leaves)
        for i, x in enumerate(leaves):
            if is_holder(x):
                cell = cell_of(x)
                opened[i] = node = RefArgument(type(x), held(cell))
                self.cells.append(cell)
                self.nodes.append(node)
        if len(self.cells) > 1 and len(set(map(id, self.cells))) < len(self.cells):
            raise ValueError(
                f"{what}: only one reference to a mutable array may be passed as an argument to a function, but the "
                "same ref is passed twice; pass it once"
            )
        self.tree: Any = unflatten(treedef, opened)

    def of_refs(self, entries: Sequence[Any]) -> list[Any]:
        """For each ref its entry, from those of all leaves of the opened tree; None for a box without leaves."""
        remaining, found = iter(entries), []
        for node in flatten(self.tree, is_ref_argument)[0]:
            of_node = list(islice(remaining, structure(node).num_leaves))
            if is_ref_argument(node):
                found.append(of_node[0] if of_node else None)
        return found

    def passed(self) -> passed_to:
        """A context manager for the call of the function; in it these refs must not be closed over."""
        return passed_to(self.what, self.cells)

    def store(self, values: Values) -> None:
        """Write the final values to the refs."""
        for cell, value in zip(self.cells, values, strict=True):
            cell.write(value)


def closed(tree: Any) -> tuple[Any, list[Cell]]:
    """An opened tree with new refs that hold the values, and the cells of these refs."""
    nodes, treedef = flatten(tree, is_ref_argument)
    found = [holder_of(x.kind, x.value) if is_ref_argument(x) else x for x in nodes]
    return unflatten(treedef, found), [cell_of(ref) for ref, x in zip(found, nodes, strict=True) if is_ref_argument(x)]


def pure(fun: Callable[..., Any]) -> Callable[..., tuple[Any, list[Any]]]:
    """`fun` as a function of opened arguments, which returns the final values of the refs as a second result."""

    @functools.wraps(fun)
    def of_values(*args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
        (args, kwargs), cells = closed((args, kwargs))
        out = fun(*args, **kwargs)
        check_outputs(*flatten_from_user(out), name_of(fun))
        return out, [cell.last() for cell in cells]

    return of_values
