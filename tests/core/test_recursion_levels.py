"""Python's recursion limit after a flattening that failed: as many levels are left as before."""

from __future__ import annotations

import collections
import dataclasses
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import flatten_util, lax, numpy as jnp, tree, tree_util


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
LOOP_OF_DICTS: dict[str, Any] = {}
LOOP_OF_DICTS["a"] = LOOP_OF_DICTS


class Converted:
    """An object whose `__jax_array__` raises."""

    def __jax_array__(self) -> Any:
        raise Odd


class Metadata:
    """Metadata of a node, or a static value, that raises when it is compared or hashed."""

    def __init__(self, fault: str):
        self.fault = fault

    def __eq__(self, other: object) -> bool:
        if self.fault == "eq":
            raise Odd
        return self is other

    def __hash__(self) -> int:
        if self.fault == "hash":
            raise Odd
        return 1


class Holder:
    """A node with metadata; it cannot be put together."""

    def __init__(self, metadata: Any):
        self.metadata = metadata


def _put_together(metadata: Any, children: Any) -> Any:
    raise Odd


tree_util.register_pytree_node(Holder, lambda node: ((1.0,), node.metadata), _put_together)


@tree_util.register_dataclass
@dataclasses.dataclass(repr=False)
class Fields:
    a: float


class Pair(collections.namedtuple("Pair", "a b")):
    """A named tuple that does not let itself be inspected."""

    def __iter__(self) -> Any:
        raise Odd

    def __getattribute__(self, name: str) -> Any:
        raise Odd


VALUES: dict[str, Any] = {
    "a node that raises": deep(Node("raises")),
    "a node that is no pair": deep(Node("no pair")),
    "children that raise": deep(Node("children")),
    "keys that raise": deep({Key(): 1, Key(): 2}),
    "keys of two types": deep({1: 1.0, "a": 2.0}),
    "ordered keys": deep(collections.OrderedDict({1: 1.0, "a": 2.0})),
    "default keys": deep(collections.defaultdict(list, {1: 1.0, "a": 2.0})),
    "a tree without end": LOOP,
    "a dict without end": LOOP_OF_DICTS,
    "__jax_array__": deep(Converted()),
    "metadata compared": deep(Holder(Metadata("eq"))),
    "metadata hashed": deep(Holder(Metadata("hash"))),
    "metadata without hash": deep(Holder([])),
    "unflatten": deep(Holder(None)),
    "a missing field": deep(object.__new__(Fields)),
    "a named tuple": deep(Pair(1.0, 2.0)),
}
identity = xlamini.jit(lambda *args: args)
static = xlamini.jit(lambda x, s: x, static_argnums=1)
donating = xlamini.jit(lambda x: x, donate_argnums=0)
compiled = xlamini.jit(lambda x: x).lower(1.0).compile()
ENTRIES: dict[str, Callable[[Any], Any]] = {
    "jit": lambda v: identity(v),
    "leaves": tree.leaves,
    "hash": lambda v: hash(tree.structure(v)),
    "equal": lambda v: tree.structure(v) == tree.structure(v),
    "paths": tree_util.tree_flatten_with_path,
    "map": lambda v: tree.map(lambda x, y: x, v, v),
    "map over a leaf": lambda v: tree.map(lambda x, y: x, [1.0], v),
    "reduce": lambda v: tree.reduce(lambda a, b: a, v),
    "transpose": lambda v: tree.transpose(tree.structure(v), tree.structure(v), v),
    "transpose a leaf": lambda v: tree.transpose(tree.structure([1]), None, v),
    "broadcast": lambda v: tree_util.tree_broadcast(v, v),
    "broadcast a leaf": lambda v: tree_util.tree_broadcast([1], v),
    "ravel": flatten_util.ravel_pytree,
    "an operation": lambda v: jnp.sin(v),
    "concatenate": lambda v: jnp.concatenate(v),
    "array": lambda v: jnp.asarray(v),
    "allclose": lambda v: jnp.allclose(v, v),
    "static": lambda v: static(1.0, v),
    "static twice": lambda v: [static(1.0, tuple(v)) for _ in range(2)],
    "donated": lambda v: donating(v),
    "compiled": lambda v: compiled(v),
    "lower": lambda v: identity.lower(v),
    "a result": lambda v: xlamini.jit(lambda x: v)(1.0),
    "vmap": lambda v: xlamini.vmap(lambda x: x)(v),
    "axes": lambda v: xlamini.vmap(lambda x: x, in_axes=(v,))(1.0),
    "axes of it": lambda v: xlamini.vmap(lambda x: x, in_axes=(v,))(v),
    "grad": lambda v: xlamini.grad(lambda x: 1.0)(v),
    "jvp": lambda v: xlamini.jvp(lambda x: x, (v,), (v,)),
    "vjp": lambda v: xlamini.vjp(lambda x: x, v),
    "linearize": lambda v: xlamini.linearize(lambda x: x, v),
    "eval_shape": lambda v: xlamini.eval_shape(lambda x: x, v),
    "make_jaxpr": lambda v: xlamini.make_jaxpr(lambda x: x)(v),
    "device_put": xlamini.device_put,
    "block_until_ready": xlamini.block_until_ready,
    "checkpoint": lambda v: xlamini.checkpoint(lambda x: x)(v),
    "custom_jvp": lambda v: xlamini.custom_jvp(lambda x: x)(v),
    "scan": lambda v: lax.scan(lambda c, x: (c, x), v, None, length=2),
    "while": lambda v: lax.while_loop(lambda c: False, lambda c: c, v),
    "cond": lambda v: lax.cond(True, lambda x: x, lambda x: x, v),
    "shardings": lambda v: xlamini.jit(lambda x: x, in_shardings=v)(1.0),
    "export": lambda v: xlamini.export.export(identity)(v),
    "pure_callback": lambda v: xlamini.pure_callback(lambda x: x, v, v),
}
LOST = {("jit", "keys that raise"), ("jit", "keys of two types"), ("jit", "a missing field")}
"""C++ that the user calls raises them, and no code of the library runs; a newer jaxlib may lose none."""
CASES: dict[str, Callable[[], Any]] = {
    "a predicate": lambda: tree.leaves(deep(1.0), is_leaf=is_leaf),
    "a predicate of map": lambda: tree.map(lambda x: x, deep(1.0), is_leaf=is_leaf),
    "a predicate of paths": lambda: tree_util.tree_flatten_with_path(deep(1.0), is_leaf=is_leaf),
    "a prefix": lambda: tree_util.tree_broadcast(deep(1.0, 3), deep(Node("raises"))),
    "a derivative": lambda: xlamini.grad(lambda x: deep(Node("raises")))(1.0),
    "a loop": lambda: lax.scan(lambda c, x: (deep(Node("raises")), x), 1.0, np.ones(3)),
    "leaves": lambda: tree_util.all_leaves([deep(1.0)], is_leaf=is_leaf),
}


# jaxlib asks whether a value has an attribute; from Python 3.13 on it is said that what the value raises is ignored.
@pytest.mark.filterwarnings("ignore:Exception ignored in PyObject_HasAttr:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("entry", ENTRIES)
def test_no_value_takes_a_level(entry: str) -> None:
    """Whatever a value raises, in whatever function: as many levels are left as before."""
    lost = {}
    for name, value in VALUES.items():
        for _ in range(2):
            before = levels_left()
            with suppress(Odd, AttributeError, RecursionError, TypeError, ValueError):
                ENTRIES[entry](value)
            if levels_left() != before:
                lost[entry, name] = before - levels_left()
    assert set(lost) <= {case for case in LOST if case[0] == entry}, lost


def test_lost_levels_are_found_again() -> None:
    for _ in range(400):
        with suppress(ValueError):
            identity([[{1: 1.0, "a": 2.0}]])
        tree.leaves(1.0)
    assert levels_left() > 200


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
