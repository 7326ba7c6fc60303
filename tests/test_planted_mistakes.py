"""What the larger tests see in the full tier only: each test here finds one of `planted_mistakes` in the quick tier."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import P, debug, effects_barrier, grad, jit, lax, make_jaxpr, numpy as jnp, random, shard_map, vmap
from xlamini.experimental import io_callback
from xlamini.sharding import AxisType, set_mesh

# --- effects in loops, and branches


def test_ordered_effects_of_a_scan_precede_what_follows_it() -> None:
    seen: list[Any] = []

    def step(c: Any, x: Any) -> Any:
        io_callback(seen.append, None, c, ordered=True)
        return c + x, None

    @jit
    def f(xs: Any) -> Any:
        last, _ = lax.scan(step, 0.0, xs)
        io_callback(seen.append, None, -last, ordered=True)
        return last

    assert float(f(jnp.arange(1.0, 5.0))) == 10
    effects_barrier()
    assert list(map(float, seen)) == [0, 1, 3, 6, -10]


def test_a_callback_of_what_a_scan_does_not_change_is_called_at_each_step_under_grad() -> None:
    seen: list[Any] = []

    def total(w: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            scale = jnp.sin(w)
            debug.callback(seen.append, scale)
            return c * scale + x, None

        return lax.scan(step, 1.0, jnp.ones(3))[0]

    s = np.sin(0.5)
    np.testing.assert_allclose(grad(total)(0.5), np.cos(0.5) * (3 * s**2 + 2 * s + 1), rtol=1e-6)
    effects_barrier()
    np.testing.assert_allclose(seen, [s] * 3, rtol=1e-6)


def test_an_example_has_no_nan_from_a_branch_that_it_does_not_take() -> None:
    x = jnp.array([1.0, 0.0, -3.0])

    def total(t: Any) -> Any:
        return vmap(lambda x: lax.cond(x > 0, lambda t: jnp.log(t * x), lambda t: t * x, t))(x).sum()

    assert float(grad(total)(2.0)) == 0.5 - 3
    assert float(jit(grad(total))(2.0)) == 0.5 - 3


# --- random bits


def test_a_long_permutation_is_two_sorts_by_random_bits() -> None:
    key, expected = random.key(3), np.arange(5000)
    found = random.permutation(key, 5000)
    for _ in range(2):
        key, now = random.split(key)
        expected = expected[np.argsort(random.bits(now, (5000,)), kind="stable")]
    np.testing.assert_array_equal(found, expected)


def test_uniform_floats_between_arrays() -> None:
    key, (low, high) = random.key(3), np.array([[1, 2, -3], [2, 5, 3]], np.float32)
    expected = low + np.asarray(random.uniform(key, (3,))) * (high - low)
    np.testing.assert_allclose(random.uniform(key, (3,), minval=low, maxval=high), expected, rtol=1e-6)


# --- shardings


def test_keys_that_vary_in_a_loop_of_shard_map() -> None:
    keys = random.split(random.key(0), 8)
    draws = lambda keys: lax.map(random.uniform, keys)
    with set_mesh(xlamini.make_mesh((4,), ("x",), devices=xlamini.devices()[:4])):
        found = jit(shard_map(draws, in_specs=P("x"), out_specs=P("x")))(keys)
    np.testing.assert_array_equal(found, draws(keys))


def test_a_result_of_operands_that_are_split_differently_is_whole() -> None:
    with set_mesh(xlamini.make_mesh((4, 2), ("x", "y"), AxisType.Explicit)):
        x, y = (xlamini.reshard(jnp.ones((8, 8)), P(name, None)) for name in "xy")
        with pytest.warns(UserWarning, match="operands are split differently"):
            assert make_jaxpr(lambda x, y: x + y)(x, y).out_avals[0].sharding.spec == P(None, None)


# --- calls and rules


def test_a_donated_keyword_is_deleted() -> None:
    x, y = jnp.ones(4), jnp.ones(4)
    jit(lambda x, y: x * 2 + y, donate_argnames="y")(y=y, x=x)
    assert (x.is_deleted(), y.is_deleted()) == (False, True)


def test_indices_of_each_example_are_not_sorted_together() -> None:
    add = vmap(lambda x, i: x.at[i].add(1.0, indices_are_sorted=True))
    made = make_jaxpr(add)(jnp.zeros((2, 4)), jnp.array([[2, 3], [0, 1]]))
    assert [eqn.params["indices_are_sorted"] for eqn in made.eqns if eqn.primitive.name == "scatter-add"] == [False]
