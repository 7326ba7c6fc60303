"""Backward rules of custom_vjp that write refs, which their forward rules pass on; values are those of JAX 0.10.2."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from xlamini import custom_vjp, grad, jit, lax, new_ref, numpy as jnp, vjp, vmap
from xlamini.errors import JAXTypeError

pytestmark = pytest.mark.sample(3)


@custom_vjp
def stash(ref: Any, x: Any) -> Any:
    return x


def stash_bwd(ref: Any, ct: Any) -> Any:
    ref[...] = ct
    return None, ct


stash.defvjp(lambda ref, x: (x, ref), stash_bwd)


@custom_vjp
def tally(refs: Any, x: Any) -> Any:
    return x * 2


def tally_bwd(refs: Any, ct: Any) -> Any:
    refs["sum"][...] += ct
    refs["count"][...] += 1
    return None, ct * 2


tally.defvjp(lambda refs, x: (x * 2, refs), tally_bwd)


def loss(x: Any, ref: Any) -> Any:
    return jnp.sin(stash(ref, jnp.sin(x)))


def test_a_rule_stashes_a_cotangent() -> None:
    ref = new_ref(0.0)
    assert_close(grad(loss)(1.0, ref), 0.36003947, 1e-6)
    assert_close(ref[...], np.cos(np.sin(1.0)), 1e-6)
    assert_close(jit(grad(loss))(2.0, ref), -0.25563914, 1e-6)
    assert_close(ref[...], 0.6143003, 1e-6)
    _, pullback = vjp(lambda x: loss(x, ref), 1.0)
    assert_close(ref[...], 0.6143003, 1e-6)
    pullback(10.0)
    assert_close(ref[...], 10 * np.cos(np.sin(1.0)), 1e-5)


def test_each_example_of_vmap_stashes_in_its_part() -> None:
    ref = new_ref(jnp.zeros(3))
    for run in (vmap(grad(loss)), jit(vmap(grad(loss)))):
        assert_close(run(jnp.arange(3.0), ref), [1, 0.36003947, -0.25563914], 1e-6)
        assert_close(ref[...], [1, 0.66636676, 0.6143003], 1e-6)
        ref[...] = 0.0


def test_several_calls_add_in_the_order_of_the_backward_pass() -> None:
    refs = {"sum": new_ref(100.0), "count": new_ref(0)}
    slope = grad(lambda x: tally(refs, tally(refs, x)) + tally(refs, x) * 3)(1.0)
    assert_close(slope, 10, 0)
    assert (float(refs["sum"][...]), int(refs["count"][...])) == (106, 3)  # 1, 2 and 3


def test_a_gradient_in_a_loop_stashes_each_time() -> None:
    ref = new_ref(0.0)

    def step(x: Any, _: Any) -> Any:
        return x - 0.1 * grad(loss)(x, ref), ref[...]

    last, seen = jit(lambda x: lax.scan(step, x, None, length=3))(1.0)
    x, expected = 1.0, []
    for _ in range(3):
        expected.append(np.cos(np.sin(x)))
        x -= 0.1 * np.cos(np.sin(x)) * np.cos(x)
    assert_close(seen, expected, 1e-5)
    assert_close(ref[...], expected[-1], 1e-5)
    assert_close(last, x, 1e-5)


@pytest.mark.parametrize("around", [jit, xlamini.checkpoint, lambda f: lambda x, r: lax.cond(x > 0, f, f, x, r)])
def test_a_rule_in_a_part_of_the_function_cannot_write(around: Any) -> None:
    with pytest.raises((JAXTypeError, ValueError), match=r"writes a ref, in a call that is part of|made outside of"):
        grad(around(loss))(1.0, new_ref(0.0))
