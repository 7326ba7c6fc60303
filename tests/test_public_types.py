"""A user's program as type checkers see it: `pyright` checks this file, and running it shows that the names exist."""
# pyright: strict
from __future__ import annotations

from typing import Any, assert_type

import xlamini
import xlamini.numpy as jnp
from xlamini import P, lax, nn, scipy, sharding
from xlamini.numpy import arange, einsum


def loss(x: xlamini.Array, y: jnp.ndarray) -> xlamini.Array:
    assert_type(jnp.sum(x, axis=0), xlamini.Array)
    assert_type(xlamini.numpy.linalg.norm(y), xlamini.Array)
    return jnp.mean(jnp.add(nn.softmax(x), y))


def test_functions_of_faces_have_types() -> None:
    x = arange(3.0)
    assert_type(x, xlamini.Array)
    assert_type(einsum("i,i->", x, x), xlamini.Array)
    assert_type(scipy.special.gamma(x), xlamini.Array)
    assert_type(scipy.stats.norm.pdf(x), xlamini.Array)
    assert_type(lax.scan(lambda c, y: (c + y, c), 0.0, x), tuple[Any, Any])
    gradient: xlamini.Array = xlamini.jit(xlamini.grad(loss))(x, x)
    assert gradient.shape == (3,)


def test_classes_of_faces_are_types() -> None:
    spec: xlamini.sharding.PartitionSpec = P("x", None)
    assert_type(P, type[sharding.PartitionSpec])
    assert_type(xlamini.__version__, str)
    assert issubclass(xlamini.errors.ShapeError, Exception) and spec == sharding.PartitionSpec("x", None)
    assert isinstance(jnp.zeros(2), jnp.ndarray) and jnp.bool is jnp.bool_
