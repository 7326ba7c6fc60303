"""A user's program as type checkers see it: `pyright` checks this file, and running it shows that the names exist."""
# pyright: strict
from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, assert_type

import xlamini
import xlamini.numpy as jnp
from xlamini import Array, P, lax, nn, random, scipy, sharding
from xlamini.numpy import arange, einsum
from xlamini.numpy.array_methods import METHODS, SYNONYMS


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


def test_operators_give_arrays() -> None:
    x, i = jnp.arange(1.0, 5.0), jnp.arange(4)
    results = (
        assert_type(x + 1, Array), assert_type(1 + x, Array), assert_type(x - 1.0, Array), assert_type(1 - x, Array),
        assert_type(x * x, Array), assert_type(2 * x, Array), assert_type(x / 2, Array), assert_type(1 / x, Array),
        assert_type(x // 2, Array), assert_type(7 // x, Array), assert_type(x % 3, Array), assert_type(x**2, Array),
        assert_type(2**x, Array), assert_type(x @ x, Array), assert_type(-x, Array), assert_type(+x, Array),
        assert_type(abs(x), Array), assert_type(~i, Array), assert_type(i & 1, Array), assert_type(i | 1, Array),
        assert_type(i ^ 1, Array), assert_type(i << 1, Array), assert_type(i >> 1, Array), assert_type(x > 0, Array),
        assert_type(x < 0, Array), assert_type(x >= 0, Array), assert_type(x <= 0, Array), assert_type(x == 0, Array),
        assert_type(x != 0, Array), assert_type((x == 0).sum(), Array), assert_type(x[0], Array),
        assert_type(x[1:, None], Array), assert_type(round(x), Array), assert_type(divmod(x, 2)[0], Array),
    )
    assert all(isinstance(r, Array) for r in results)
    for row in x:
        assert_type(row, Array)


def test_methods_and_properties_have_types() -> None:
    x = jnp.ones((2, 3))
    results = (
        assert_type(x.T, Array), assert_type(x.mT, Array), assert_type(x.real, Array), assert_type(x.sum(), Array),
        assert_type(x.mean(0), Array), assert_type(x.max(axis=1), Array), assert_type(x.std(), Array),
        assert_type(x.reshape(3, 2), Array), assert_type(x.ravel(), Array), assert_type(x.astype("int32"), Array),
        assert_type(x.at[0].set(1), Array), assert_type(x.at[0, 1].add(2.0), Array), assert_type(x.at[0].get(), Array),
        assert_type(x.argmax(), Array), assert_type(x.sort(), Array), assert_type(x.cumsum(), Array),
        assert_type(x.transpose(1, 0), Array), assert_type(x.squeeze(), Array), assert_type(x.dot(x.T), Array),
        assert_type(x.clip(0, 1), Array), assert_type(x.take(0), Array), assert_type(x.nonzero(), tuple[Array, ...])[0],
    )
    assert all(isinstance(r, Array) for r in results)
    assert_type(x.shape, tuple[int, ...])
    assert_type(x.ndim, int)
    assert_type(len(x), int)
    assert_type(bool(x.any()), bool)


def test_functions_that_return_one_array_say_so() -> None:
    x, key = jnp.ones((2, 2)), random.key(0)
    results = (
        assert_type(jnp.where(x > 0, x, 0.0), Any), assert_type(jnp.take(x, 0), Array), assert_type(lax.tanh(x), Array),
        assert_type(lax.add(x, x), Array), assert_type(lax.dot(x, x), Array), assert_type(lax.cumsum(x), Array),
        assert_type(lax.select(x > 0, x, x), Array), assert_type(lax.iota("int32", 3), Array),
        assert_type(lax.dynamic_slice(x, (0, 0), (1, 1)), Array), assert_type(jnp.add(x, 1), Array),
        assert_type(jnp.linalg.norm(x), Array), assert_type(jnp.linalg.inv(x + jnp.eye(2)), Array),
        assert_type(nn.relu(x), Array), assert_type(nn.softmax(x), Array), assert_type(jnp.atleast_1d(1.0), Array),
        assert_type(random.normal(key, (2,)), Array), assert_type(random.uniform(key), Array),
        assert_type(random.randint(key, (2,), 0, 5), Array), assert_type(random.choice(key, 3), Array),
    )
    assert all(isinstance(r, Array) for r in results)
    assert_type(key, Array)
    assert_type(random.split(key), Array)
    assert_type(xlamini.devices(), list[xlamini.Device])


def scaled(x: Array, factor: float, *, bias: float = 0.0) -> Array:
    return x * factor + bias


def test_transformed_functions_have_the_parameters_of_the_users() -> None:
    x = jnp.ones(2)
    assert_type(xlamini.jit(scaled)(x, 2.0, bias=1.0), Array)
    assert_type(xlamini.jit(static_argnums=1)(scaled)(x, 2.0), Array)
    assert_type(xlamini.jit(scaled).lower(x, 2.0), xlamini.stages.Lowered)
    assert_type(xlamini.jit(scaled).trace(x, 2.0), xlamini.stages.Traced)
    assert_type(xlamini.vmap(scaled, (0, None))(x, 2.0), Array)
    assert_type(xlamini.value_and_grad(total)(x), tuple[Array, Any])
    gradient: Callable[[Array], Any] = xlamini.grad(total)
    assert gradient(x).shape == (2,) and xlamini.jacrev(total)(x).shape == (2,)


def total(x: Array) -> Array:
    return x.sum()


def test_the_stub_of_arrays_lists_the_methods_that_arrays_have() -> None:
    """Names and parameters in array_interface.pyi are those at run time."""
    stub = ast.parse(Path(str(xlamini.__file__)).with_name("runtime").joinpath("array_interface.pyi").read_text())
    declared = {n.name: n.args for n in ast.walk(stub) if isinstance(n, ast.FunctionDef)}
    x = jnp.zeros((1, 1))
    for name, family in functions_as_methods():
        function = getattr(importlib.import_module(f"xlamini.numpy.{family}"), SYNONYMS.get(name, name))
        parameters = list(inspect.signature(function).parameters)[1:]
        args = declared[name]
        assert [a.arg for a in (*args.posonlyargs, *args.args, *args.kwonlyargs)][1:] == parameters, name
        assert callable(getattr(x, name))
    assert [name for name in declared if not hasattr(x, name)] == []


def functions_as_methods() -> list[tuple[str, str]]:
    methods = [(name, family) for family, names in METHODS.items() for name in names.split()]
    return methods + [(synonym, dict(methods)[name]) for synonym, name in SYNONYMS.items()]
