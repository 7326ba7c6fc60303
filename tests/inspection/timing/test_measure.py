"""Measured reports: the times of kernels, lines and calls are those of runs, beside the predicted ones."""
from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.inspection.timing.measure.calls import PooledRun
from xlamini.inspection.timing.measure.function import RUNS, with_times
from xlamini.inspection.timing.measure.overhead import MUCH
from xlamini.inspection.timing.measure.shares import CallShares, RunShare
from xlamini.inspection.wall_time import wall_time
from xlamini.inspection.xla.facts import Examined, XlaKernel


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


@pytest.fixture(scope="module")
def target(report: Any) -> Any:
    assert report.json()["failure"] is None
    return report.json()["targets"][0]


def test_measured_times_stand_beside_the_bounds(target: Any) -> None:
    assert target["prediction"]["source"].startswith("xlamini's bound")
    products = [kernel for kernel in target["kernels"] if kernel["kind"] == "dot"]
    assert products and all(kernel["time"] == "lower bound" and kernel["measured"] for kernel in products)
    assert all(kernel["measured"]["seconds"] > 0 for kernel in products)


def test_the_parts_add_up_to_a_call(report: Any, target: Any) -> None:
    call = target["measured"]
    parts = [kernel["measured"]["seconds"] for kernel in target["kernels"] if kernel.get("measured")]
    assert sum(parts) == pytest.approx(call["kernels"])
    whole = call["seconds"] if abs(call["traced"] / call["seconds"] - 1) > MUCH else call["traced"]
    assert call["kernels"] + call["between"] + call["around"] == pytest.approx(whole)
    shown = wall_time(report.json(), target)
    assert sum(part["seconds"] for part in shown) == pytest.approx(whole)
    assert sum(part["share"] for part in shown) == pytest.approx(1)
    assert call["low"] <= call["seconds"] <= call["high"] and call["threads"] >= 1


def test_the_loop_has_times_by_iteration(report: Any, target: Any) -> None:
    loops = [kernel for kernel in target["kernels"] if kernel.get("measured") and kernel["measured"]["runs"] == 8]
    assert loops
    for kernel in loops:
        measured = kernel["measured"]
        assert 0 < measured["first"] + measured["last"] <= measured["seconds"] * 1.0001
    assert "By iteration, as measured" in report.text("kernels")
    once = [kernel for kernel in target["kernels"] if kernel.get("measured") and kernel["measured"]["runs"] == 1]
    assert once and all(kernel["measured"]["first"] is None for kernel in once)


def test_the_loop_has_the_most_flops_of_all_lines(report: Any) -> None:
    """Two functions have equations on it, and both count."""
    table, _, parts = report.text("source").partition("Where the time of a call went")
    rows = [line.split() for line in table.splitlines() if "layers" not in line]
    shown = {int(row[0]): row for row in rows if row and row[0].isdigit() and len(row) > 5}
    assert set(shown) >= {LINE + 1, LINE + 2, LINE + 3}
    flops = {number: float(row[1]) * {"M": 1e6, "K": 1e3}.get(row[2], 1) for number, row in shown.items()}
    assert flops[LINE + 2] == pytest.approx(8 * flops[LINE + 1], rel=0.01)
    assert "before the first kernel and after the last" in parts


def test_limits_speak_of_measured_and_of_predicted_time(report: Any, target: Any) -> None:
    assert report.check(time="<60s") and not report.check(time="<1ns")
    (predicted,) = report.check(seconds="<1ns").outcomes
    assert predicted.value == target["prediction"]["seconds"] and not report.check(seconds="<1ns")


def test_a_report_that_was_not_measured_has_no_time() -> None:
    report = xlamini.inspect(jnp.sin)(1.0)
    with pytest.raises(ValueError, match=r"check: time is the measured time of a call; inspect with measure=True"):
        report.check(time="<1s")
    assert "measured" not in report.json()["targets"][0]


def test_a_function_that_fails_leaves_the_predictions() -> None:
    def failing(x: Any) -> Any:
        return xlamini.pure_callback(lambda a: 1 / 0, xlamini.ShapeDtypeStruct((), "float32"), x)

    report = xlamini.inspect(failing, measure=True)(1.0)
    content = report.json()
    assert content["failure"]["stage"] == "measure"
    assert "ZeroDivisionError" in content["failure"]["error"]
    assert content["targets"][0]["kernels"]
    assert "not known: measure failed: " in repr(report.check(time="<1s"))


def test_a_function_with_effects_says_how_often_they_happened() -> None:
    seen: list[float] = []

    def noting(x: Any) -> Any:
        xlamini.debug.callback(lambda a: seen.append(float(a)), x)
        return x + 1

    (target,) = xlamini.inspect(noting, measure=True)(1.0).json()["targets"]
    xlamini.effects_barrier()
    assert f"it ran {len(seen)} times in all, its effects too" in target["measured"]["source"]
    least, most = (int(word) for word in RUNS.split() if word.isdigit())
    assert least <= len(seen) <= most
    assert RUNS in " ".join((xlamini.inspect.__doc__ or "").split())


def test_static_arguments() -> None:
    power = xlamini.jit(lambda x, n: x**n, static_argnums=1)
    content = xlamini.inspect(power, measure=True)(jnp.ones(8), 3).json()
    assert content["failure"] is None
    assert content["targets"][0]["measured"]["source"].startswith("the median of ")


def test_a_convolution_has_the_time_of_its_pool() -> None:
    """Its event ends when the work was handed out, after a small part of the time that the peaks allow."""
    x, k = jnp.ones((8, 16, 64, 64)), jnp.ones((32, 16, 3, 3))
    (target,) = xlamini.inspect(lambda x, k: lax.conv(x, k, (1, 1), "SAME"), measure=True)(x, k).json()["targets"]
    (kernel,) = [kernel for kernel in target["kernels"] if kernel["kind"] == "convolution"]
    assert kernel["measured"]["seconds"] > kernel["seconds"] / 10


def _kernel(name: str) -> XlaKernel:
    return XlaKernel(name, "fusion", "fusion", "f32[]", 1, 0.0, 0.0, 1e-6, "lower bound", (), False, 0, "")


def _call(seconds: float, **kernels: list[float]) -> CallShares:
    """A call whose kernels took these times, and the rest lay around them."""
    runs = [RunShare(_run(name), time, time / 2) for name, times in kernels.items() for time in times]
    return CallShares(seconds, runs, 0.0, seconds - sum(run.seconds for run in runs), 2)


def _run(name: str) -> Any:
    return PooledRun(name, "device 0", 0.0, 0.0, 0.0, 0.0)


def test_the_calls_that_took_as_long_as_without_the_profiler_count() -> None:
    calls = [_call(seconds, k=[seconds / 4, seconds / 2]) for seconds in (8.0, 2.0, 4.0, 100.0)]
    found = with_times(Examined("here", kernels=(_kernel("k"), _kernel("n"))), [9.0, 7.0, 5.0], "ran 9 times", calls)
    k, n = (kernel.measured for kernel in found.kernels)
    assert n is None and k is not None
    assert (k.runs, k.first, k.last) == (2, 1.75, 3.5)
    assert (k.seconds, k.unseen, k.low, k.high) == pytest.approx((5.25, 2.625, 3.0625, 27.125))
    call = found.measured
    assert call is not None
    assert (call.seconds, call.low, call.high, call.count) == (7.0, 6.0, 8.0, 3)
    assert (call.traced, call.kernels, call.around, call.threads) == (6.0, 5.25, 1.75, 2)
    assert (call.between_high, call.around_low, call.around_high) == pytest.approx((0.0, 0.875 * 7 / 6, 7.75 * 7 / 6))
    assert call.source == (
        "the median of 3 calls, half of which took 6 s to 8 s; it ran 9 times. 5.25 s were in kernels (of which "
        "2.625 s in threads of a pool, which record nothing), on 2 threads, 0 s between them, and 1.75 s before the "
        "first and after the last. Under the profiler a call took 6 s (-14%), and its parts are scaled to one without."
    )


def test_a_call_of_which_the_profiler_saw_nothing() -> None:
    found = with_times(Examined("here", kernels=(_kernel("k"),)), [2.0], "ran 3 times", [])
    assert found.kernels[0].measured is None and found.measured is not None
    assert found.measured.source.endswith("it ran 3 times. The profiler saw no run of its kernels.")
