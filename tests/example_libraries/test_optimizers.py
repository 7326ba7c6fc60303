"""Optimizers and schedules beside recorded values of JAX; states as pytrees; errors by their text."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xlamini import grad, jit, lax, numpy as jnp, tree
from xlamini.example_libraries import optimizers as opt

pytestmark = pytest.mark.sample(4)

PARAMS = {"a": jnp.array([1.0, -2.0, 0.5]), "b": (jnp.array([[0.3, -0.4], [0.1, 0.2]]),)}

# Three steps of x -> x * 2 + sin(x * 3 + i), recorded from JAX 0.10.2.
RECORDED = {
    "sgd": (opt.sgd(0.1), [0.59247, -1.010137, 0.051687, -0.063105, -0.268102, -0.136986, -0.103619]),
    "momentum": (
        opt.momentum(0.1, 0.9), [0.093235, -0.205154, -0.423043, -0.40561, 0.010579, -0.306858, -0.363432]
    ),
    "nesterov": (
        opt.nesterov(0.1, 0.9), [-0.333055, 0.107553, -0.589354, -0.518809, -0.124044, -0.416261, -0.470696]
    ),
    "adagrad": (opt.adagrad(0.1), [0.959695, -1.955333, 0.458478, 0.254932, -0.363834, 0.049429, 0.152496]),
    "rmsprop": (opt.rmsprop(0.1), [0.415855, -1.28995, -0.121161, -0.305544, -0.293175, -0.421272, -0.382232]),
    "rmsprop_momentum": (
        opt.rmsprop_momentum(0.1), [-0.320188, -0.587313, -0.756196, -0.790053, 0.119423, -0.488003, -0.710557]
    ),
    "adam": (opt.adam(0.1), [0.716699, -1.702736, 0.208644, 0.002604, -0.170643, -0.197265, -0.099255]),
    "adamax": (opt.adamax(0.1), [0.760013, -1.724819, 0.238053, 0.012776, -0.208176, -0.167444, -0.079001]),
    "sm3": (opt.sm3(0.1), [0.959695, -1.955333, 0.458478, 0.254932, -0.363834, 0.053535, 0.152496]),
    "with a schedule": (
        opt.sgd(opt.exponential_decay(0.1, 3, 0.5)),
        [0.641777, -1.195629, 0.119095, -0.00224, -0.250057, -0.085673, -0.047345],
    ),
}  # fmt: skip
SCHEDULES = {
    "constant": (opt.constant(0.1), [0.1, 0.1, 0.1, 0.1, 0.1]),
    "exponential": (opt.exponential_decay(0.1, 3, 0.5), [0.1, 0.07937, 0.05, 0.039685, 0.019843]),
    "inverse": (opt.inverse_time_decay(0.1, 3, 0.5), [0.1, 0.085714, 0.066667, 0.06, 0.046154]),
    "staircase": (opt.inverse_time_decay(0.1, 3, 0.5, True), [0.1, 0.1, 0.066667, 0.066667, 0.05]),
    "polynomial": (opt.polynomial_decay(0.1, 5, 0.01, 2.0), [0.1, 0.0676, 0.0244, 0.0136, 0.01]),
    "piecewise": (opt.piecewise_constant([2, 4], [1.0, 0.5, 0.1]), [1.0, 1.0, 0.5, 0.5, 0.1]),
}


def step(optimizer: opt.Optimizer, i: Any, state: Any) -> Any:
    grads = tree.map(lambda x: x * 2 + jnp.sin(x * 3 + i), optimizer.params_fn(state))
    return optimizer.update_fn(i, grads, state)


@pytest.mark.parametrize("optimizer, expected", RECORDED.values(), ids=RECORDED)
def test_steps_are_those_of_jax(optimizer: opt.Optimizer, expected: list[float]) -> None:
    state = optimizer.init_fn(PARAMS)
    compiled = jit(lambda i, state: step(optimizer, i, state))
    for i in range(3):
        state = compiled(i, state)
    found = tree.leaves(optimizer.params_fn(state))
    np.testing.assert_allclose(np.concatenate([x.ravel() for x in found]), expected, atol=3e-6)


@pytest.mark.parametrize("schedule, expected", SCHEDULES.values(), ids=SCHEDULES)
def test_schedules_are_those_of_jax(schedule: opt.Schedule, expected: list[float]) -> None:
    steps = (0, 1, 3, 4, 7)
    np.testing.assert_allclose([schedule(i) for i in steps], expected, atol=1e-6)
    np.testing.assert_allclose([jit(schedule)(i) for i in steps], expected, atol=1e-6)


def test_a_state_is_a_carry_of_loops() -> None:
    adam = opt.adam(0.1)
    end = lax.fori_loop(0, 3, lambda i, state: step(adam, i, state), adam.init_fn(PARAMS))
    found = tree.leaves(adam.params_fn(end))
    np.testing.assert_allclose(np.concatenate([x.ravel() for x in found]), RECORDED["adam"][1], atol=3e-6)


@pytest.mark.full
def test_a_number_is_a_param() -> None:
    for maker in (opt.sgd, opt.adagrad, opt.adam, opt.sm3):
        init, update, get_params = maker(0.1)
        assert float(get_params(update(0, jnp.array(1.0), init(jnp.array(2.0))))) < 2


def test_states_are_unpacked_and_packed() -> None:
    state = opt.momentum(0.1, 0.9).init_fn(PARAMS)
    marked = opt.unpack_optimizer_state(state)
    assert tree.structure(marked) == tree.structure(PARAMS)
    x, velocity = marked["a"].subtree
    assert x is PARAMS["a"] and not velocity.any()
    again = opt.pack_optimizer_state(marked)
    assert tree.structure(again) == tree.structure(state)
    assert all(a is b for a, b in zip(tree.leaves(again), tree.leaves(state), strict=True))


def test_gradients_are_clipped_to_a_norm() -> None:
    norm = np.sqrt(sum((np.asarray(x) ** 2).sum() for x in tree.leaves(PARAMS)))
    np.testing.assert_allclose(opt.l2_norm(PARAMS), norm, rtol=1e-6)
    np.testing.assert_allclose(opt.clip_grads(PARAMS, 1.0)["a"], PARAMS["a"] / norm, rtol=1e-6)
    np.testing.assert_array_equal(opt.clip_grads(PARAMS, 10.0)["a"], PARAMS["a"])
    assert not opt.clip_grads(jnp.zeros(2), 1.0).any()


@opt.optimizer
def doubled() -> Any:
    return lambda x: x, lambda i, g, x: (x, x), lambda x: x


@pytest.mark.parametrize("call, error, text", [
    (lambda: opt.sgd("a"), TypeError, "a step size must be a number or a function of the step, got 'a'"),
    (lambda: opt.sgd(jnp.ones(2)), TypeError, "a step size must be a number"),
    (lambda: opt.sgd(0.1).update_fn(0, {"a": 1.0}, opt.sgd(0.1).init_fn(PARAMS)), TypeError, "structure of the params"),
    (lambda: doubled().update_fn(0, 1.0, doubled().init_fn(1.0)), TypeError, "a state of the structure .* got"),
    (lambda: opt.piecewise_constant([1, 2], [1.0]), ValueError, "one more than boundaries, got 1 and 2"),
    (lambda: opt.piecewise_constant([[1]], [1.0, 2.0]), ValueError, "must be sequences of numbers"),
    (lambda: opt.pack_optimizer_state({"a": 1.0}), TypeError, "all leaves must be JoinPoint, got float"),
])  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_norms_of_gradients_out_of_the_range_of_squares() -> None:
    assert opt.l2_norm([jnp.full(9, 100, jnp.float16)]) == 300
    np.testing.assert_allclose(opt.clip_grads([jnp.array([3e25, 4e25])], 1.0)[0], [0.6, 0.8], 1e-6)
    assert grad(lambda x: opt.l2_norm([x]))(jnp.zeros(2)).tolist() == [0, 0]
