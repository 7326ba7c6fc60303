"""`debug.why_zero`: 25 gradients that are zero, and what cuts each; beside programs whose gradient is not zero."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import checkpoint, custom_vjp, debug, grad, jit, lax, nn, numpy as jnp, vmap
from xlamini.analysis import unroll

X = np.array([0.5, -1.25, 2.0], np.float32)


@custom_vjp
def forgetful(x: Any) -> Any:
    return jnp.sin(x)


forgetful.defvjp(lambda x: (jnp.sin(x), None), lambda _, ct: (0 * ct,))


def in_scan(x: Any) -> Any:
    return lax.scan(lambda c, v: (c + jnp.floor(v), None), 0.0, x)[0]


def in_cond(x: Any) -> Any:
    return lax.cond(x[0] > 0, lambda: jnp.ceil(x).sum(), lambda: x.sum())


def in_while(x: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, c: jnp.sign(c), x).sum()


EVERYWHERE = "zero everywhere"
HERE = "zero at these values"
DISCRETE = "has no derivatives"
CUTS = {
    "stop_gradient": (lambda x: lax.stop_gradient(x).sum(), "stop_gradient", EVERYWHERE),
    "round": (lambda x: jnp.round(x).sum(), "round", EVERYWHERE),
    "floor": (lambda x: jnp.floor(3 * x).sum(), "floor", EVERYWHERE),
    "ceil": (lambda x: jnp.ceil(x * x).sum(), "ceil", EVERYWHERE),
    "sign": (lambda x: (jnp.sign(x) * 2).sum(), "sign", EVERYWHERE),
    "integers": (lambda x: x.astype(int).sum() * 1.0, "convert_element_type", DISCRETE),
    "comparison": (lambda x: (x > 0).sum() * 1.0, "gt", DISCRETE),
    "equality": (lambda x: jnp.float32(x[0] == x[1]), "eq", DISCRETE),
    "argmax": (lambda x: jnp.argmax(x) * 1.0, "argmax", DISCRETE),
    "argsort": (lambda x: jnp.argsort(x).astype(float).sum(), "sort", DISCRETE),
    "accuracy": (lambda x: jnp.mean(jnp.argmax(jnp.stack([x, -x]), 0) == 0), "argmax", DISCRETE),
    "relu": (lambda x: nn.relu(-x * x).sum(), "custom_jvp_call", f"the derivative of relu is {HERE}"),
    "tanh": (lambda x: jnp.tanh(100 * x).sum(), "tanh", HERE),
    "sigmoid": (lambda x: nn.sigmoid(1000 * x).sum(), "logistic", HERE),
    "clip": (lambda x: jnp.clip(x, 5.0, 6.0).sum(), "max", HERE),
    "maximum": (lambda x: jnp.maximum(x, 9.0).sum(), "max", HERE),
    "factor of 0": (lambda x: (x * 0.0).sum(), "mul", HERE),
    "where": (lambda x: jnp.where(x < 9, 0.0, x).sum(), "select_n", HERE),
    "underflow": (lambda x: jnp.exp(x - 500).sum(), "exp", HERE),
    "custom rule": (lambda x: forgetful(x).sum(), "custom_vjp_call", HERE),
    "scan": (in_scan, "floor", EVERYWHERE),
    "cond": (in_cond, "ceil", EVERYWHERE),
    "while": (in_while, "sign", EVERYWHERE),
    "jit": (jit(lambda x: jnp.round(x).sum()), "round", EVERYWHERE),
    "checkpoint": (checkpoint(lambda x: jnp.round(x).sum()), "round", EVERYWHERE),
    "vmap": (lambda x: vmap(lambda v: jnp.round(v * v))(x).sum(), "round", EVERYWHERE),
}


@pytest.mark.parametrize("name", CUTS)
def test_cuts(name: str) -> None:
    f, operation, reason = CUTS[name]
    assert not np.asarray(grad(f)(X)).any()
    (found,) = debug.why_zero(f)(X).arguments
    assert found.is_zero and (found.zeros, found.size) == (3, 3)
    assert {cut.place.primitive for cut in found.cuts if cut.place} == {operation}
    assert all(reason in cut.reason and cut.place.file == __file__ for cut in found.cuts if cut.place)


def test_lines_and_iterations() -> None:
    found = debug.why_zero(in_while)(X)
    (cut,) = found.cuts
    assert cut.place is not None and cut.place.source == "return lax.fori_loop(0, 3, lambda i, c: jnp.sign(c), x).sum()"
    assert cut.place.iterations == (2,)  # the gradient comes from the end
    assert repr(found).startswith("x: zero, because\n    ")
    assert ", iteration 2: return lax.fori_loop" in repr(found)
    assert found.as_dict()["arguments"][0]["cuts"][0]["place"]["primitive"] == "sign"


def test_arguments_that_nothing_depends_on() -> None:
    unused, cancels, integers = debug.why_zero(lambda x, y, n: (y - y).sum() + n, (0, 1, 2))(X, X, 3).arguments
    assert [cut.reason for cut in unused.cuts] == ["no result depends on it"]
    assert [cut.reason for cut in cancels.cuts] == ["its contributions to the results cancel each other"]
    assert [cut.reason for cut in integers.cuts] == ["its dtype int32 has no derivatives"]


def test_trees_have_the_names_of_their_leaves() -> None:
    found = debug.why_zero(lambda p, x: (p["w"] * x + jnp.round(p["b"])).sum())({"w": 2.0, "b": 1.0}, X)
    assert [(a.argument, a.is_zero) for a in found.arguments] == [("p['b']", True), ("p['w']", False)]


@pytest.mark.full
def test_gradients_that_are_not_zero() -> None:
    """A mask of `where` and an index are choices; they cut nothing that another path carries."""
    for f in (
        lambda x: jnp.where(x > 0, x, 0.1 * x).sum(),
        lambda x: x[jnp.argmax(x)],
        lambda x: jnp.sort(x)[0],
        lambda x: nn.relu(x).sum(),
    ):
        (found,) = debug.why_zero(f)(X).arguments
        assert not found.is_zero and not found.cuts
        assert found.zeros == int((np.asarray(grad(f)(X)) == 0).sum())


def test_control_flow_in_python_and_errors() -> None:
    def f(x: Any) -> Any:
        return jnp.round(x) if x > 0 else x

    assert debug.why_zero(f)(2.0).arguments[0].is_zero
    assert not debug.why_zero(f)(-2.0).arguments[0].is_zero
    with pytest.raises(TypeError, match="argnums 2 names no positional argument"):
        debug.why_zero(f, 2)(1.0)


def test_long_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unroll, "MOST", 100)
    with pytest.raises(ValueError, match="more than 100 operations, counting each iteration"):
        debug.why_zero(lambda x: lax.fori_loop(0, 101, lambda i, c: c * 2, x))(1.0)


def test_backward_passes_of_gradients() -> None:
    """The gradient is a program, too: its own gradient is cut where the second derivative is zero."""
    (found,) = debug.why_zero(lambda x: xlamini.grad(lambda y: (3 * y).sum())(x).sum())(X).arguments
    assert [cut.reason for cut in found.cuts] == ["no result depends on it"]
