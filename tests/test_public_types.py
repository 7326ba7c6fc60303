"""A user's program as type checkers see it; running it shows that the names exist.

`pyright` checks this file, and mypy may: `MYPYPATH=typings mypy --follow-imports=silent tests/test_public_types.py`.
"""
# pyright: strict
from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, assert_type

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import Array, P, lax, nn, random, scipy, sharding, tree
from xlamini.core import ClosedJaxpr
from xlamini.numpy import arange, einsum
from xlamini.numpy.array_methods import METHODS, SYNONYMS
from xlamini.transforms.derivatives.vjp import VJP
from xlamini.tree_util import PyTreeDef


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
    gradient: xlamini.Array = xlamini.jit(xlamini.grad(loss))(x, x)
    assert gradient.shape == (3,)


def test_classes_of_faces_are_types() -> None:
    spec: xlamini.sharding.PartitionSpec = P("x", None)
    assert_type(P, type[sharding.PartitionSpec])
    assert_type(xlamini.__version__, str)
    assert issubclass(xlamini.errors.ShapeError, Exception) and spec == sharding.PartitionSpec("x", None)
    assert isinstance(jnp.zeros(2), jnp.ndarray) and jnp.bool is jnp.bool_


@pytest.mark.full
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


@pytest.mark.full
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


@pytest.mark.full
def test_functions_that_return_one_array_say_so() -> None:
    x, key = jnp.ones((2, 2)), random.key(0)
    results = (
        assert_type(jnp.where(x > 0, x, 0.0), Array), assert_type(jnp.where(x > 0), tuple[Array, ...])[0],
        assert_type(jnp.take(x, 0), Array), assert_type(lax.tanh(x), Array),
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


class State(NamedTuple):
    position: Array
    more: dict[str, Array]


def some_state() -> State:
    return State(jnp.ones(2), {"speed": jnp.ones(2)})


def step(state: State, x: Array) -> tuple[State, Array]:
    return state._replace(position=state.position + x), state.position


def add(carry: Array, x: Array) -> tuple[Array, Array]:
    return carry + x, carry


def moved(state: State) -> State:
    return state._replace(position=state.position * 2)


def unmoved(state: State) -> State:
    return state


def shape_of(x: Array) -> tuple[int, ...]:
    return x.shape


@pytest.mark.full
def test_control_flow_keeps_the_types_of_its_functions() -> None:
    x, state = jnp.ones(2), some_state()
    assert_type(lax.scan(step, state, x), tuple[State, Array])
    assert_type(lax.scan(add, 0.0, x), tuple[Array, Array])
    assert_type(lax.scan(add, x[0], np.ones(2, np.float32), reverse=True), tuple[Array, Array])
    assert_type(lax.cond(True, moved, unmoved, state), State)
    assert_type(lax.cond(x[0] > 0, scaled, scaled, x, 2.0), Array)
    assert_type(lax.cond(True, lambda: state, lambda: state), State)
    assert_type(lax.switch(1, [moved, moved], state), State)
    assert_type(lax.while_loop(lambda s: s.position[0] < 3, moved, state), State)
    assert_type(lax.fori_loop(0, 2, powered, 1.0), Array)
    assert_type(lax.fori_loop(0, 2, counted, x), Array)
    assert_type(lax.map(total, jnp.ones((2, 2))), Array)
    assert_type(lax.map(moved, some_state(), batch_size=2), State)
    assert_type(lax.associative_scan(jnp.add, x), Array)
    assert_type(lax.associative_scan(joined, state), State)


def powered(i: Array, y: Array) -> Array:
    return y * i


def counted(i: int, y: Array) -> Array:
    return y * i


def joined(a: State, b: State) -> State:
    return State(a.position + b.position, a.more)


@xlamini.checkpoint
def block(x: Array, factor: float, *, bias: float = 0.0) -> Array:
    return x * factor + bias


@xlamini.remat(static_argnums=1, policy=xlamini.checkpoint_policies.nothing_saveable)
def powers(x: Array, n: int) -> dict[str, Array]:
    return {"square": x**n}


@xlamini.custom_jvp
def log1pexp(x: Array, factor: float = 1.0) -> Array:
    return jnp.log1p(jnp.exp(x)) * factor


@log1pexp.defjvp
def log1pexp_jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...]) -> tuple[Array, Array]:
    return log1pexp(*primals), tangents[0] * primals[1] / (1 + jnp.exp(-primals[0]))


@xlamini.custom_vjp
def clipped(x: Array) -> Array:
    return x


def clipped_fwd(x: Array) -> tuple[Array, None]:
    return x, None


def clipped_bwd(_: None, ct: Array) -> tuple[Array]:
    return (jnp.clip(ct, -1, 1),)


clipped.defvjp(clipped_fwd, clipped_bwd)


@xlamini.custom_gradient
def squared(x: Array) -> tuple[Array, Callable[[Array], tuple[Array]]]:
    return x**2, lambda ct: (2 * ct * x,)


@pytest.mark.full
def test_decorated_functions_keep_their_signatures() -> None:
    x = jnp.ones(2)
    assert_type(block(x, 2.0, bias=1.0), Array)
    assert_type(powers(x, 2), dict[str, Array])
    assert_type(log1pexp(x), Array)
    assert_type(log1pexp_jvp((x, 1.0), (x, 0.0)), tuple[Array, Array])
    assert_type(clipped(x), Array)
    assert_type(squared(x), Array)
    assert_type(xlamini.jit(xlamini.checkpoint(scaled))(x, 2.0), Array)
    assert_type(xlamini.pmap(total)(jnp.ones((1, 2))), Array)
    mesh = xlamini.make_mesh((1,), ("x",))
    assert_type(xlamini.shard_map(total, mesh=mesh, in_specs=P("x"), out_specs=P(), check_vma=False)(x), Array)
    decorator = xlamini.shard_map(mesh=mesh, in_specs=(P("x"),), out_specs=P("x"))
    assert_type(decorator(clipped)(x), Array)


def with_count(x: Array) -> tuple[Array, int]:
    return x.sum(), 1


def test_derivatives_are_tuples_of_the_functions_types() -> None:
    x = jnp.ones(2)
    out, pullback = assert_type(xlamini.vjp(moved, some_state()), tuple[State, VJP])
    assert_type(pullback(out), tuple[Any, ...])
    assert_type(xlamini.vjp(with_count, x, has_aux=True)[2], int)
    assert_type(xlamini.jvp(moved, (some_state(),), (some_state(),)), tuple[State, State])
    assert_type(xlamini.jvp(with_count, (x,), (x,), has_aux=True), tuple[Array, Array, int])
    value, f_jvp = xlamini.linearize(total, x)
    assert_type((value, f_jvp(x)), tuple[Array, Array])
    assert_type(xlamini.linearize(with_count, x, has_aux=True)[2], int)
    assert_type(xlamini.value_and_grad(with_count, has_aux=True)(x)[0], tuple[Array, int])
    assert_type(xlamini.grad(with_count, has_aux=True)(x)[1], int)
    assert_type(xlamini.jacfwd(with_count, has_aux=True)(x)[1], int)
    assert_type(xlamini.jacrev(with_count, has_aux=True)(x)[1], int)
    assert_type(xlamini.hessian(with_count, has_aux=True)(x)[1], int)


def test_trees_and_places_keep_their_types() -> None:
    x, state, named = jnp.ones(2), some_state(), {"w": jnp.ones(2)}
    assert_type(tree.map(jnp.sin, x), Array)
    assert_type(tree.map(jnp.sin, state), State)
    assert_type(tree.map(shape_of, named), dict[str, tuple[int, ...]])
    assert_type(tree.map(jnp.sin, {"w": np.ones(2)}), Any)
    assert_type(tree.leaves(named), list[Array])
    assert_type(tree.leaves([1, 2]), list[int])
    assert_type(tree.leaves(state), list[Any])
    assert_type(tree.flatten(named), tuple[list[Array], PyTreeDef])
    assert_type(xlamini.device_put(np.ones(2)), Array)
    assert_type(xlamini.device_put(1.0, xlamini.devices()[0], donate=False), Array)
    assert_type(xlamini.device_put(state), State)
    assert_type(xlamini.device_put(named), dict[str, Array])
    assert_type(xlamini.device_get(x), np.ndarray)
    assert_type(xlamini.device_get(named), dict[str, np.ndarray])
    assert_type(xlamini.block_until_ready(state), State)
    assert_type(xlamini.eval_shape(total, x), xlamini.ShapeDtypeStruct)
    assert_type(xlamini.eval_shape(with_count, x), Any)
    assert_type(xlamini.make_jaxpr(total)(x), ClosedJaxpr)
    assert_type(xlamini.make_jaxpr(total, return_shape=True)(x), tuple[ClosedJaxpr, Any])


def test_the_stub_of_arrays_lists_the_methods_that_arrays_have() -> None:
    """Names and parameters in array_interface.pyi are those at run time."""
    stub = ast.parse(
        Path(str(xlamini.__file__)).with_name("runtime").joinpath("arrays/array_interface.pyi").read_text()
    )
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
