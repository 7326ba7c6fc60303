"""checkpoint policies that store residuals in the host's memory."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.ad_checkpoint import Offloadable, checkpoint_name, saved_residuals
from xlamini.checkpoint_policies import (
    offload_dot_with_no_batch_dims,
    save_and_offload_only_these_names,
    save_from_both_policies,
    save_only_these_names,
)

RNG = np.random.default_rng(0)
W = RNG.normal(size=(3, 4, 4)).astype(np.float32)
X = RNG.normal(size=(4, 4)).astype(np.float32)


def offloading(moved: list[str], saved: list[str]) -> Any:
    return save_and_offload_only_these_names(
        names_which_can_be_saved=saved,
        names_which_can_be_offloaded=moved,
        offload_src="device",
        offload_dst="pinned_host",
    )


def layer(x: Any, w: Any) -> Any:
    hidden = checkpoint_name(jnp.tanh(x @ w), "hidden")
    return checkpoint_name(jnp.sin(hidden @ w), "out"), None


POLICIES = {
    "names": offloading(["hidden"], []),
    "both": offloading(["hidden"], ["out"]),
    "dots": offload_dot_with_no_batch_dims("device", "pinned_host"),
    "either": save_from_both_policies(save_only_these_names("out"), offloading(["hidden"], [])),
}


def stacked(policy: Any, prevent_cse: bool = True) -> Any:
    """A loss of three layers in a scan."""
    body = layer if policy is None else xlamini.checkpoint(layer, policy=policy, prevent_cse=prevent_cse)
    return lambda w, x: jnp.sum(lax.scan(body, x, w)[0] ** 2)


def one(policy: Any) -> Any:
    body = layer if policy is None else xlamini.checkpoint(layer, policy=policy)
    return lambda w, x: jnp.sum(body(x, w[0])[0] ** 2)


@pytest.mark.full
@pytest.mark.parametrize("name", POLICIES)
def test_gradients_are_those_of_the_plain_function(name: str) -> None:
    for program in (one, stacked):
        found = xlamini.jit(xlamini.grad(program(POLICIES[name]), (0, 1)))(W, X)
        wanted = xlamini.grad(program(None), (0, 1))(W, X)
        for a, b in zip(found, wanted, strict=True):
            assert a.sharding.memory_kind == "device"
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


@pytest.mark.full
def test_composition() -> None:
    program, plain = one(POLICIES["both"]), one(None)
    np.testing.assert_allclose(xlamini.grad(program, 1)(W, X), xlamini.grad(plain, 1)(W, X), rtol=1e-5, atol=1e-6)
    xs = np.stack([X, 2 * X])
    mapped = xlamini.vmap(xlamini.grad(program, 1), (None, 0))(W, xs)
    np.testing.assert_allclose(mapped, xlamini.vmap(xlamini.grad(plain, 1), (None, 0))(W, xs), rtol=1e-5, atol=1e-6)

    def curvature(f: Any) -> Any:
        return xlamini.grad(lambda x: jnp.sum(xlamini.grad(f, 1)(W, x) ** 2))(X)

    np.testing.assert_allclose(curvature(program), curvature(plain), rtol=1e-4, atol=1e-5)


def test_the_offloaded_values_are_what_the_backward_pass_reads() -> None:
    body = xlamini.checkpoint(lambda x: jnp.sum(layer(x, W[0])[0]), policy=POLICIES["both"])
    types = [str(residual.aval) for residual in saved_residuals(body, X)]
    assert "float32<host>[4,4]" in types
    program = str(xlamini.make_jaxpr(xlamini.grad(stacked(POLICIES["names"], False)))(W, X))
    assert "f32<host>[3,4,4]" in program
    assert "f32<host>[4,4] = device_put[memory_space=Host]" in program
    assert "f32[4,4] = device_put[memory_space=Device]" in program
    assert program.count("tanh") == 1  # its result is stored


@pytest.mark.full
def test_parameters_on_the_host_as_well() -> None:
    """Parameters in the host's memory are moved to the device within each iteration."""
    device, host = (jnp.asarray(W).sharding.with_memory_kind(kind) for kind in ("device", "pinned_host"))

    def moving(x: Any, w: Any) -> Any:
        return layer(x, xlamini.device_put(w, device))

    body = xlamini.checkpoint(moving, policy=POLICIES["names"], prevent_cse=False)
    loss = xlamini.jit(xlamini.grad(lambda w, x: jnp.sum(lax.scan(body, x, w)[0] ** 2)))
    found = loss(xlamini.device_put(W, host), X)
    assert found.sharding.memory_kind == "pinned_host"
    np.testing.assert_allclose(found, xlamini.grad(stacked(None))(W, X), rtol=2e-5, atol=1e-6)


def test_a_policy_of_ones_own() -> None:
    def policy(primitive: Any, *avals: Any, **params: Any) -> Any:
        return Offloadable("device", "pinned_host") if primitive.name == "tanh" else False

    np.testing.assert_allclose(
        xlamini.grad(one(policy), 1)(W, X), xlamini.grad(one(None), 1)(W, X), rtol=1e-5, atol=1e-6
    )
    with pytest.raises(ValueError, match=r"checkpoint: the policy <lambda>: a program moves values .* not 'disk'"):
        xlamini.grad(xlamini.checkpoint(jnp.sin, policy=lambda *_, **__: Offloadable("device", "disk")))(1.0)
