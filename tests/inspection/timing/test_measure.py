"""Measured reports: the times of kernels, lines and calls are those of runs on this machine."""
from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.inspection.timing.measure import Measurement


def layers(w: Any, x: Any) -> Any:
    x = jnp.tanh(x @ w)
    x = lax.fori_loop(0, 8, lambda _, c: jnp.tanh(c @ w), x)
    return jnp.sort(x, axis=0)


LINE = inspect.getsourcelines(layers)[1]


@pytest.fixture(scope="module")
def report() -> Any:
    rng = np.random.default_rng(0)
    w, x = (jnp.asarray(rng.normal(size=shape), "float32") for shape in ((256, 256), (64, 256)))
    return xlamini.inspect(xlamini.jit(layers, donate_argnums=1), measure=True)(w, x)


def test_every_kernel_that_takes_time_is_measured(report: Any) -> None:
    content = report.json()
    assert content["failure"] is None
    (target,) = content["targets"]
    assert all(kernel["time"] == "measured" for kernel in target["kernels"] if kernel["kind"] == "dot")
    assert sum(kernel["seconds"] or 0 for kernel in target["kernels"]) > 0
    assert target["prediction"]["source"].startswith("measured: the median of ")
    assert "kernels cover" in target["prediction"]["source"]


def test_the_loop_is_the_slowest_line(report: Any) -> None:
    """Two functions have equations on it, and both count."""
    rows = [line.split() for line in report.text("source").splitlines() if "layers" not in line]
    shown = {int(row[0]): row for row in rows if row and row[0].isdigit() and len(row) > 5}
    assert set(shown) >= {LINE + 1, LINE + 2, LINE + 3}
    flops = {number: float(row[1]) * {"M": 1e6, "K": 1e3}.get(row[2], 1) for number, row in shown.items()}
    assert flops[LINE + 2] == pytest.approx(8 * flops[LINE + 1], rel=0.01)


def test_limits_speak_of_measured_time(report: Any) -> None:
    assert report.check(seconds="<60s")
    assert not report.check(seconds="<1ns")


def test_a_function_that_fails_leaves_the_predictions() -> None:
    def failing(x: Any) -> Any:
        return xlamini.pure_callback(lambda a: 1 / 0, xlamini.ShapeDtypeStruct((), "float32"), x)

    content = xlamini.inspect(failing, measure=True)(1.0).json()
    assert content["failure"]["stage"] == "measure"
    assert "ZeroDivisionError" in content["failure"]["error"]
    assert content["targets"][0]["kernels"]


def test_static_arguments() -> None:
    power = xlamini.jit(lambda x, n: x**n, static_argnums=1)
    content = xlamini.inspect(power, measure=True)(jnp.ones(8), 3).json()
    assert content["failure"] is None
    assert content["targets"][0]["prediction"]["source"].startswith("measured")


def test_a_kernel_whose_threads_are_not_seen_keeps_its_bound() -> None:
    x, k = jnp.ones((8, 16, 32, 32)), jnp.ones((32, 16, 3, 3))
    (target,) = xlamini.inspect(lambda x, k: lax.conv(x, k, (1, 1), "SAME"), measure=True)(x, k).json()["targets"]
    for kernel in target["kernels"]:
        if kernel["kind"] == "convolution" and kernel["time"] == "measured":
            assert kernel["seconds"] > kernel["flops"] / target["roof"]["flops"] / 10


def test_the_text_of_a_measurement() -> None:
    found = Measurement([0.002, 0.001, 0.004], {"k": 0.001}, 0.0015)
    assert str(found) == "measured: the median of 3 calls of 1 ms to 4 ms; kernels cover 75% of it"
