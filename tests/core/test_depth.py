"""The depth of Python's stack: errors inside jaxlib's flatten take nothing of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import xlamini
from xlamini import numpy as jnp, tree


class Node:
    """A container that cannot be flattened."""


xlamini.tree_util.register_pytree_node(Node, lambda node: 1 / 0, lambda data, children: Node())


def nested(x: Any, depth: int) -> Any:
    for _ in range(depth):
        x = [x]
    return x


def endless() -> list[Any]:
    x: list[Any] = []
    x.append(x)
    return x


def room(depth: int = 0) -> int:
    try:
        return room(depth + 1)
    except RecursionError:
        return depth


def fails(program: Callable[[], Any]) -> None:
    with pytest.raises((ValueError, ZeroDivisionError, RecursionError, TypeError)):
        program()


TREES = {
    "keys without an order": nested({1: 1.0, "a": 2.0}, 20),
    "a node that raises": nested(Node(), 20),
    "too deep": nested(1.0, 3000),
    "endless": endless(),
}
CALLS: dict[str, Callable[[Any], Any]] = {
    "leaves": tree.leaves,
    "leaves with is_leaf": lambda x: tree.leaves(x, is_leaf=lambda x: False),
    "map": lambda x: tree.map(abs, x),
    "grad": lambda x: xlamini.grad(lambda y: 1.0)(x),
    "vmap": lambda x: xlamini.vmap(lambda y: y)(x),
    "returned": lambda x: xlamini.jit(lambda y: x)(1.0),
    "device_put": lambda x: xlamini.device_put(1.0, x),
    "a device": lambda x: jnp.zeros(3, device=x),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", TREES)
def test_errors_leave_the_stack_as_it_was(kind: str, call: str) -> None:
    fails(lambda: CALLS[call](TREES[kind]))
    before = room()
    for _ in range(3):
        fails(lambda: CALLS[call](TREES[kind]))
    assert room() >= before


@pytest.mark.parametrize("kind", TREES)
def test_a_jitted_function_lives_on_after_many_errors(kind: str) -> None:
    function = xlamini.jit(lambda x: 1.0)
    for _ in range(100):
        fails(lambda: function(TREES[kind]))
    fails(lambda: tree.leaves(TREES[kind]))
    assert function(2.0) == 1.0 and xlamini.grad(jnp.sin)(0.0) == 1.0
    assert room() > 500
