"""Repeated blocks become functions: which ones, where they are cut, and that the numbers stay."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini.core.flags.compile_flags import outlining
from xlamini.interpreters.outline.repeats import Run, find_runs

WIDTH = 16


@pytest.fixture(autouse=True)
def short_programs_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("xlamini.staging.compile.outlining.MIN_EQUATIONS", 100)


def layer(x: Any, w: Any, activation: Callable[[Any], Any] = xlamini.nn.gelu) -> Any:
    centered = x - jnp.mean(x, axis=-1, keepdims=True)
    normal = centered / jnp.sqrt(jnp.mean(centered * centered, axis=-1, keepdims=True) + 1e-5)
    hidden = activation(normal @ w["up"] + w["bias"])
    return x + jnp.where(hidden > 5, hidden * 0.5, hidden) @ w["down"]


def params(depth: int, seed: int = 0) -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)

    def one() -> dict[str, np.ndarray]:
        up, down = rng.normal(size=(WIDTH, 32)) / 4, rng.normal(size=(32, WIDTH)) / 6
        return {"up": up.astype("f4"), "bias": rng.normal(size=32).astype("f4"), "down": down.astype("f4")}

    return [one() for _ in range(depth)]


def model(ws: Any, x: Any) -> Any:
    for w in ws:
        x = layer(x, w)
    return jnp.sum(x * x)


X = np.linspace(-1, 1, 5 * WIDTH, dtype="f4").reshape(5, WIDTH)


def both(fun: Callable[..., Any], *args: Any) -> tuple[Any, Any, str]:
    """The results without and with outlining, and what the report says."""
    plain, outlined = xlamini.jit(fun, outline=False), xlamini.jit(fun, outline=True)
    return plain(*args), outlined(*args), outlined.lower(*args).outline_report()


def assert_close(wanted: Any, found: Any) -> None:
    for a, b in zip(xlamini.tree.leaves(wanted), xlamini.tree.leaves(found), strict=True):
        scale = np.abs(a).max() + 1e-6
        np.testing.assert_allclose(np.asarray(b) / scale, np.asarray(a) / scale, atol=2e-6)


def report_of_equal_results(fun: Callable[..., Any], *args: Any) -> str:
    """What the report says of a function whose blocks are called, and whose results stay."""
    plain, outlined, report = both(fun, *args)
    assert_close(plain, outlined)
    assert "called" in report
    return report


@pytest.mark.full
@pytest.mark.parametrize("depth", [5, 8])
def test_forward_and_backward_blocks_are_found(depth: int) -> None:
    report = report_of_equal_results(xlamini.value_and_grad(model), params(depth), X)
    assert report.count(f"called {depth} times") + report.count(f"called {depth - 1} times") == 2, report


def test_the_gradient_keeps_the_fewest_bytes_from_which_the_rest_is_cheap() -> None:
    """Of a layer's 32 hidden units what gelu's tanh takes and gives, of its 16 inputs those without their mean."""
    text = xlamini.jit(xlamini.grad(model)).lower(params(8), X).as_text()
    backward = next(line for line in text.splitlines() if "func.func private" in line and "block_1" in line)
    taken = backward.partition("->")[0]
    kept = [taken.count(f"tensor<5x{rest}xf32>") for rest in ("32", "16", "1")]
    assert kept == [2, 2, 0], backward  # one of 16 is the cotangent


@pytest.mark.full
def test_slices_of_one_array_are_kept_as_that_array() -> None:
    def apart(w: Any, x: Any) -> Any:
        a, b, c, d = jnp.split(x @ w["up"] + w["bias"], 4, axis=-1)
        return x + (a * b + c * d) @ w["down"][:8]

    def stacked(ws: Any, x: Any) -> Any:
        for w in ws:
            x = apart(w, layer(x, w))
        return jnp.sum(x * x)

    report_of_equal_results(xlamini.grad(stacked), params(8), X)
    text = xlamini.jit(xlamini.grad(stacked)).lower(params(8), X).as_text()
    backward = [line.partition("->")[0] for line in text.splitlines() if "func.func private" in line][-1]
    assert "tensor<5x32xf32>" in backward and "tensor<5x8xf32>" not in backward, backward


@pytest.mark.full
def test_a_transposed_product_is_kept_as_the_product() -> None:
    """XLA stores what the product gives, and would copy a transposition of it for the function's result."""

    def heads(w: Any, x: Any) -> Any:
        parts = (x @ w["up"]).reshape(5, 4, 8)
        mixed = jnp.einsum("qhd,khd->hqk", parts, parts) @ parts[:, :, :4].transpose(1, 0, 2)
        return x + mixed.transpose(1, 0, 2).reshape(5, 16) @ w["down"][:16]

    def stacked(ws: Any, x: Any) -> Any:
        for w in ws:
            x = heads(w, layer(x, w))
        return jnp.sum(x * x)

    report_of_equal_results(xlamini.grad(stacked), params(8), X)
    text = xlamini.jit(xlamini.grad(stacked)).lower(params(8), X).as_text()
    backward = next(line for line in text.splitlines() if "func.func private" in line and "block_1" in line)
    taken = backward.partition("->")[0]
    assert taken.count("tensor<4x5x4xf32>") == 1 and "tensor<5x4x4xf32>" not in taken, backward


@pytest.mark.full
def test_products_of_stacked_rows_are_passed_as_matrices() -> None:
    """As XLA stores them, so that kernels of the forward and the backward block are equal."""

    def of_products(ws: Any, x: Any) -> Any:
        for w in ws:
            x = layer(x, w, lambda h: h * jnp.cos(h))  # its derivative keeps the product
        return jnp.sum(x * x)

    x = np.stack([X, 2 * X, X - 1])
    report_of_equal_results(xlamini.grad(of_products), params(8), x)
    text = xlamini.jit(xlamini.grad(of_products)).lower(params(8), x).as_text()
    forward, backward = [line for line in text.splitlines() if "func.func private" in line and "_block_" in line]
    assert "tensor<15x32xf32>" in forward.partition("->")[2], forward
    assert "tensor<15x32xf32>" in backward.partition("->")[0], backward


@pytest.mark.full
@pytest.mark.parametrize("order", [(0, 1, 2), (1, 0, 2), (2, 0, 1)])
def test_products_along_each_dimension(order: tuple[int, ...]) -> None:
    """The matrix of a product has its free dimensions in the order of the result, whichever is summed over."""

    def mixed(x: Any, w: Any) -> Any:
        turned = jnp.einsum("abc,cd->abd", x.transpose(order), w)
        return x + jnp.tanh(turned).transpose(np.argsort(order))

    def stacked(ws: Any, x: Any) -> Any:
        size = x.shape[order[2]]
        for w in ws:
            x = mixed(mixed(x, w[:size, :size]), w[:size, :size])
        return jnp.sum(x * x)

    ws = [0.1 * np.random.default_rng(i).normal(size=(6, 6)).astype("f4") for i in range(20)]
    report_of_equal_results(xlamini.value_and_grad(stacked), ws, np.linspace(-1, 1, 120, dtype="f4").reshape(4, 5, 6))


def test_calls_are_kept_apart_by_the_compiler() -> None:
    lowered = xlamini.jit(model).lower(params(8), X)
    text = lowered.as_text()
    assert text.count('inlineable = "false"') in (7, 8)
    assert text.count("stablehlo.dot_general") <= 4


@pytest.mark.full
@pytest.mark.parametrize("transform", [xlamini.jit, lambda f: xlamini.vmap(f, in_axes=(None, 0))])
def test_under_other_transformations(transform: Any) -> None:
    x = np.stack([X, 2 * X]) if transform is not xlamini.jit else X
    report_of_equal_results(transform(xlamini.grad(model)), params(6), x)


@pytest.mark.full
def test_second_derivatives() -> None:
    def curvature(ws: Any, x: Any) -> Any:
        return xlamini.grad(lambda y: jnp.sum(xlamini.grad(model, argnums=1)(ws, y) ** 2))(x)

    report_of_equal_results(curvature, params(6), X)


@pytest.mark.full
def test_a_users_jitted_layers_are_written_out_first() -> None:
    inner = xlamini.jit(layer)

    def jitted(ws: Any, x: Any) -> Any:
        for w in ws:
            x = inner(x, w)
        return jnp.sum(x * x)

    report_of_equal_results(xlamini.grad(jitted), params(8), X)


@pytest.mark.full
def test_layers_that_differ_stay() -> None:
    def mixed(ws: Any, x: Any) -> Any:
        for i, w in enumerate(ws):
            x = layer(x, w) if i != 4 else jnp.tanh(layer(x, w))
        return jnp.sum(x * x)

    report_of_equal_results(xlamini.grad(mixed), params(9), X)


@pytest.mark.full
def test_shared_weights_and_values_that_skip_layers() -> None:
    def skipping(ws: Any, x: Any) -> Any:
        start, kept = x, []
        for w in ws:
            x = layer(x, {**w, "down": ws[0]["down"]}) + 0.1 * start
            kept.append(x)
        return jnp.sum(x * x) + sum(jnp.sum(k) for k in kept[::2])

    report_of_equal_results(xlamini.grad(skipping), params(8), X)


@pytest.mark.full
def test_random_keys_and_loops_in_a_layer() -> None:
    def noisy(ws: Any, x: Any, key: Any) -> Any:
        for i, w in enumerate(ws):
            kept = xlamini.random.bernoulli(xlamini.random.fold_in(key, i), 0.9, x.shape)
            x = layer(jnp.where(kept, x, 0), w)
            x = xlamini.lax.fori_loop(0, 3, lambda _, y: y * 0.9, x)
        return jnp.sum(x * x)

    plain, outlined, _ = both(noisy, params(6), X, xlamini.random.key(3))
    assert_close(plain, outlined)


def test_printing_in_a_layer_stays_in_order(capfd: pytest.CaptureFixture[str]) -> None:
    def talking(ws: Any, x: Any) -> Any:
        for i, w in enumerate(ws):
            x = layer(x, w)
            xlamini.debug.print("layer {}", i, ordered=True)
        return x

    xlamini.jit(talking, outline=True)(params(8), X)
    xlamini.effects_barrier()
    assert capfd.readouterr().out.split() == " ".join(f"layer {i}" for i in range(8)).split()


def test_elementwise_chains_are_left_alone() -> None:
    def chain(x: Any) -> Any:
        for _ in range(100):
            x = jnp.sin(x) * 2 + jnp.cos(x)
        return x

    assert "no block" in xlamini.jit(chain).lower(X).outline_report()


def test_switches() -> None:
    args = params(8), X
    assert "switched off" in xlamini.jit(model, outline=False).lower(*args).outline_report()
    with outlining(False):
        assert "switched off" in xlamini.jit(model).lower(*args).outline_report()
        assert "called" in xlamini.jit(model, outline=True).lower(*args).outline_report()


def test_short_programs_are_left_alone() -> None:
    assert "compile fast as they are" in xlamini.jit(model).lower(params(1), X).outline_report()


@pytest.mark.parametrize(
    "platform, reason", [("cuda", "on a GPU blocks that are called take"), ("tpu", "on tpu calls are not known")]
)
def test_other_platforms_are_left_alone(platform: str, reason: str) -> None:
    lowered = xlamini.jit(model).trace(params(8), X).lower(lowering_platforms=(platform,))
    assert reason in lowered.outline_report()


@pytest.mark.full
def test_donated_arguments() -> None:
    def update(ws: Any, x: Any) -> Any:
        return xlamini.tree.map(jnp.subtract, ws, xlamini.grad(model)(ws, x))

    ws = xlamini.tree.map(jnp.asarray, params(8))
    wanted = xlamini.jit(update, outline=False)(params(8), X)
    assert_close(wanted, xlamini.jit(update, donate_argnums=0)(ws, X))
    assert ws[0]["up"].is_deleted()


@pytest.mark.parametrize(
    ("symbols", "runs"),
    [
        ([9, *[1, 2, 3, 4] * 5, 8], [Run(1, 21, 4)]),
        ([*range(100, 120), *[1, 2, 3, 4, 5] * 4, *range(200, 210), *[6, 7, 8] * 6], [Run(20, 40, 5), Run(50, 68, 6)]),
        ([1, 2, 1, 3, 1, 2, 1, 4] * 4, [Run(0, 32, 8)]),
        (list(range(50)), []),
        ([], []),
    ],
)
def test_runs(symbols: list[int], runs: list[Run]) -> None:
    assert find_runs(symbols, 4, 3) == runs
