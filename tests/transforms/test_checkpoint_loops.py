"""A policy of checkpoint holds inside loops and branches: what it names there is saved, and not computed again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import checkpoint, checkpoint_policies as policies, grad, jit, lax, vmap
from xlamini.ad_checkpoint import Offloadable, checkpoint_name, saved_residuals

W = np.linspace(-1, 1, 16, dtype=np.float32).reshape(4, 4)
X = np.linspace(0.1, 0.9, 8, dtype=np.float32).reshape(2, 4)


def looped(x: Any, w: Any) -> Any:
    return lax.scan(lambda c, _: (checkpoint_name(jnp.sin(c @ w), "sine"), jnp.exp(c).sum()), x, None, length=3)[0]


def branched(x: Any, w: Any) -> Any:
    return lax.cond(x.sum() > 0, lambda x: jnp.sin(x @ w) @ w, lambda x: jnp.cos(jnp.exp(x) @ w), x)


def called(x: Any, w: Any) -> Any:
    return lax.scan(lambda c, _: (jit(lambda c: jnp.sin(c @ w))(c), None), x, None, length=3)[0]


def nested(x: Any, w: Any) -> Any:
    """A loop of branches, one of which is a loop."""

    def step(c: Any, i: Any) -> Any:
        inner = lambda c: lax.scan(lambda d, _: (jnp.tanh(d @ w), jnp.sin(d)), c, None, length=2)[0]
        return lax.cond(i > 0, inner, lambda c: jnp.cos(c @ w), c), c

    return lax.scan(step, x, jnp.arange(3))[0]


PROGRAMS = [looped, branched, called, nested]


def loss(function: Callable[..., Any], policy: Any) -> Callable[..., Any]:
    return lambda x, w: (checkpoint(function, policy=policy)(x, w) ** 2).sum()


def products(function: Callable[..., Any], *args: Any) -> int:
    return str(xlamini.make_jaxpr(function)(*args)).count("dot_general")


@pytest.mark.parametrize("policy", [policies.dots_saveable, policies.save_only_these_names("sine")])
@pytest.mark.parametrize("program", PROGRAMS)
def test_gradients_are_those_without_checkpoint(program: Callable[..., Any], policy: Any) -> None:
    plain = grad(lambda x, w: (program(x, w) ** 2).sum(), (0, 1))
    for x in (X, -X):
        for found, expected in zip(grad(loss(program, policy), (0, 1))(x, W), plain(x, W), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("program", PROGRAMS)
def test_saved_products_are_not_computed_again(program: Callable[..., Any]) -> None:
    saving, plain = (products(grad(loss(program, p)), X, W) for p in (policies.dots_saveable, None))
    kept = products(grad(lambda x, w: (program(x, w) ** 2).sum()), X, W)
    assert saving == kept < plain


def test_a_loop_stacks_what_is_saved_in_its_body() -> None:
    """As in JAX: the three products, and of the pullback one product, that with the weights."""
    f = checkpoint(lambda x: looped(x, W), policy=policies.dots_saveable)
    assert (3, 2, 4) in [r.aval.shape for r in saved_residuals(f, X)]
    y, pullback = xlamini.vjp(f, X)
    assert products(pullback, y) == 1


def test_names_are_saved_in_loops() -> None:
    f = checkpoint(lambda x: looped(x, W), policy=policies.save_only_these_names("sine"))
    assert (3, 2, 4) in [r.aval.shape for r in saved_residuals(f, X)]
    g = checkpoint(lambda x: looped(x, W), policy=policies.save_only_these_names("cosine"))
    assert (3, 2, 4) not in [r.aval.shape for r in saved_residuals(g, X)]


def test_values_of_a_loop_are_offloaded_by_name() -> None:
    policy = policies.save_and_offload_only_these_names(
        names_which_can_be_saved=[], names_which_can_be_offloaded=["sine"], offload_src="device",
        offload_dst="pinned_host",
    )  # fmt: skip
    f = checkpoint(lambda x: looped(x, W), policy=policy)
    assert "float32<host>[3,2,4]" in str([r.aval for r in saved_residuals(f, X)])
    found = grad(lambda x: (f(x) ** 2).sum())(X)
    np.testing.assert_allclose(found, grad(lambda x: (looped(x, W) ** 2).sum())(X), rtol=1e-5)


def test_a_policy_with_a_memory_of_its_own() -> None:
    policy = lambda prim, *_, **__: Offloadable("device", "pinned_host") if prim.name == "dot_general" else False
    f = checkpoint(lambda x: branched(x, W), policy=policy)
    assert "<host>" in str([r.aval for r in saved_residuals(f, X)])


@pytest.mark.parametrize("program", PROGRAMS)
def test_mapped_and_differentiated_in_both_orders(program: Callable[..., Any]) -> None:
    xs = np.stack([X, -X, 2 * X])
    policy = policies.dots_saveable
    expected = np.stack([grad(lambda x: (program(x, W) ** 2).sum())(x) for x in xs])
    mapped = vmap(grad(loss(program, policy)), (0, None))(xs, W)
    outside = grad(lambda xs: vmap(loss(program, policy), (0, None))(xs, W).sum())(xs)
    for found in (mapped, outside, jit(vmap(grad(loss(program, policy)), (0, None)))(xs, W)):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.full
@pytest.mark.parametrize("program", PROGRAMS)
def test_second_derivatives(program: Callable[..., Any]) -> None:
    second = lambda f: grad(lambda x: (grad(lambda x: (f(x, W) ** 2).sum())(x) ** 2).sum())(X)
    found = second(checkpoint(program, policy=policies.dots_saveable))
    np.testing.assert_allclose(found, second(program), rtol=1e-4, atol=1e-5)
