"""Objects with a method `__jax_array__` are operands, also those that pass on all attributes of the array they hold."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini.tree_util import register_pytree_node


class Plain:
    """Stands for an array, and has nothing else of it."""

    def __init__(self, value: Any):
        self.value = value

    def __jax_array__(self) -> Any:
        return self.value


class Forwarding(Plain):
    """Has the attributes of its array, `aval` among them."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "value":
            raise AttributeError(name)
        return getattr(self.value, name)


class Node(Forwarding):
    """A pytree too, whose leaf is the array."""


register_pytree_node(Node, lambda node: ((node.value,), None), lambda _, children: Node(*children))

FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "operator": lambda a, v: a + v,
    "first": lambda a, v: jnp.add(v, a),
    "beside a number": lambda a, v: jnp.multiply(2.0, v),
    "product": lambda a, v: a @ v,
    "where": lambda a, v: jnp.where(a > 1, a, v),
    "at": lambda a, v: a.at[:].set(v),
    "concatenate": lambda a, v: jnp.concatenate([a, v]),
    "interp": lambda a, v: jnp.interp(v, a, v),
    "searchsorted": lambda a, v: jnp.searchsorted(v, a),
    "polyval": lambda a, v: jnp.polyval(v, a),
    "full": lambda a, v: jnp.full(a.shape, v),
    "logical": lambda a, v: jnp.logical_and(a > 1, v),
}


@pytest.mark.parametrize("kind", [Plain, Forwarding, Node])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_object_that_stands_for_an_array_is_an_operand(name: str, kind: type[Plain]) -> None:
    fun, a, v = FUNCTIONS[name], jnp.arange(1.0, 4.0), jnp.array([0.5, 2.0, 2.5])
    expected = np.asarray(fun(a, v))
    np.testing.assert_allclose(fun(a, kind(v)), expected, rtol=1e-6)
    np.testing.assert_allclose(xlamini.jit(lambda a, v: fun(a, kind(v)))(a, v), expected, rtol=1e-6)


def test_gradients_flow_through_an_object_that_stands_for_an_array() -> None:
    a, v = jnp.arange(1.0, 4.0), jnp.ones(3)
    grad = xlamini.grad(lambda v: (a * Forwarding(v)).sum())
    np.testing.assert_array_equal(grad(v), a)
    np.testing.assert_array_equal(xlamini.vmap(lambda a, v: a - Node(v))(a, v), a - 1)
