"""Python's recursion limit after a flattening that failed: as many levels are left as before."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp, tree, tree_util


class Odd(Exception):
    pass


class Node:
    """A node whose flattening raises, or gives something else."""

    def __init__(self, fault: str):
        self.fault = fault


def _flat(node: Node) -> Any:
    if node.fault == "raises":
        raise Odd
    return 3 if node.fault == "no pair" else ((Odd.undefined for _ in range(3)), None)  # type: ignore[attr-defined]


tree_util.register_pytree_node(Node, _flat, lambda _, children: Node(""))


class Key:
    """A key that cannot be compared."""

    def __lt__(self, other: object) -> bool:
        raise Odd


def is_leaf(x: Any) -> bool:
    if isinstance(x, float):
        raise Odd
    return False


def deep(x: Any, levels: int = 10) -> Any:
    for _ in range(levels):
        x = [x]
    return x


def levels_left() -> int:
    """How often C can call Python and Python C until no level is left."""
    found = 0

    def go(_: int) -> int:
        nonlocal found
        found += 1
        return max((0,), key=go)

    with pytest.raises(RecursionError):
        go(0)
    return found


LOOP: list[Any] = []
LOOP.append(LOOP)
identity = xlamini.jit(lambda *args: args)
CASES: dict[str, Callable[[], Any]] = {
    "a predicate": lambda: tree.leaves(deep(1.0), is_leaf=is_leaf),
    "a predicate of map": lambda: tree.map(lambda x: x, deep(1.0), is_leaf=is_leaf),
    "a predicate of paths": lambda: tree_util.tree_flatten_with_path(deep(1.0), is_leaf=is_leaf),
    "a node": lambda: tree.leaves(deep(Node("raises"))),
    "a node that is no pair": lambda: tree.structure(deep(Node("no pair"))),
    "children that raise": lambda: tree.leaves(deep(Node("children"))),
    "keys": lambda: tree.leaves(deep({Key(): 1, Key(): 2})),
    "keys of two types": lambda: tree.leaves(deep({1: 1, "a": 2})),
    "a prefix": lambda: tree_util.tree_broadcast(deep(1.0, 3), deep(Node("raises"))),
    "a tree without end": lambda: tree.leaves(LOOP),
    "an operation on a tree without end": lambda: jnp.sin(LOOP),
    "arrays of a tree without end": lambda: jnp.concatenate(LOOP),
    "a type of a tree without end": lambda: xlamini.eval_shape(lambda x: x, LOOP),
    "an argument": lambda: identity(deep(Node("raises"))),
    "an argument without end": lambda: identity(LOOP),
    "a result": lambda: xlamini.jit(lambda x: deep(Node("raises")))(1.0),
    "a derivative": lambda: xlamini.grad(lambda x: deep(Node("raises")))(1.0),
    "axes": lambda: xlamini.vmap(lambda x: x, in_axes=(deep(Node("raises")),))(deep(1.0)),
    "a loop": lambda: lax.scan(lambda c, x: (deep(Node("raises")), x), 1.0, np.ones(3)),
    "leaves": lambda: tree_util.all_leaves([deep(1.0)], is_leaf=is_leaf),
}


@pytest.mark.parametrize("name", CASES)
def test_an_error_takes_no_level(name: str) -> None:
    with pytest.raises((Odd, AttributeError, RecursionError, TypeError, ValueError)):
        CASES[name]()
    before = levels_left()
    for _ in range(3):
        with pytest.raises((Odd, AttributeError, RecursionError, TypeError, ValueError)):
            CASES[name]()
    assert levels_left() == before


def test_no_level_is_lost_in_another_thread() -> None:
    found: list[int] = []

    def work() -> None:
        for _ in range(2):
            found.append(levels_left())
            with pytest.raises(Odd):
                tree.leaves(deep(1.0), is_leaf=is_leaf)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found[0] == found[1]


def test_the_errors_of_a_process_do_not_add_up() -> None:
    for _ in range(sys.getrecursionlimit()):
        with pytest.raises(Odd):
            tree.leaves(deep(1.0), is_leaf=is_leaf)
    assert float(jnp.cos(0.0)) == 1
    with pytest.raises(RecursionError, match="contains itself"):
        xlamini.eval_shape(lambda x: x, LOOP)
