"""What the profiler takes for itself: equal parts of each run, then the rest in proportion."""
from __future__ import annotations

import pytest

from xlamini.inspection.timing.measure.overhead import without_overhead
from xlamini.inspection.xla.facts import MeasuredCall, MeasuredKernel


def kernel(seconds: float, runs: int = 1) -> MeasuredKernel:
    first, last = (seconds / 2, seconds / 4) if runs > 1 else (None, None)
    return MeasuredKernel(seconds, 0.5 * seconds, 2 * seconds, 0.25 * seconds, runs, first, last)


def call(seconds: float, kernels: dict[str, MeasuredKernel], between: float, around: float) -> MeasuredCall:
    inside = sum(each.seconds for each in kernels.values())
    unseen = sum(each.unseen for each in kernels.values())
    traced = inside + between + around
    idle = between, between / 2, between * 2, around, around / 2, around * 2
    return MeasuredCall(seconds, seconds, seconds, 5, traced, inside, unseen, *idle, 1, "")


def test_little_more_is_noise() -> None:
    kernels = {"a": kernel(0.8)}
    before = call(1.0, kernels, 0.1, 0.14)
    assert without_overhead(before, kernels) == (before, kernels)


def test_each_run_gives_up_equal_parts() -> None:
    """Of 12 s that came on top, ten are in kernels, whose runs are ten, and two between them."""
    kernels = {"large": kernel(20.0), "small": kernel(18.0, runs=9)}
    found, made = without_overhead(call(36.0, kernels, 7.6, 2.4), kernels)
    assert made["large"].seconds == pytest.approx(19.0) and made["small"].seconds == pytest.approx(9.0)
    assert (found.kernels, found.between, found.around) == pytest.approx((28.0, 5.6, 2.4))
    assert found.kernels + found.between + found.around == pytest.approx(found.seconds)
    assert made["small"][:4] == pytest.approx((9.0, 4.5, 18.0, 2.25)) and made["small"].runs == 9
    assert (made["small"].first, made["small"].last) == pytest.approx((4.5, 2.25))
    spread = found.between_low, found.between_high, found.around_low, found.around_high
    assert spread == pytest.approx((2.8, 11.2, 1.2, 4.8))
    assert found.unseen == pytest.approx(7.0) and found.traced == 48.0


def test_the_shortest_run_keeps_a_tenth_and_the_rest_is_taken_in_proportion() -> None:
    kernels = {"large": kernel(30.0), "small": kernel(10.0, runs=10)}
    found, made = without_overhead(call(20.0, kernels, 0.0, 10.0), kernels)
    assert made["large"].seconds / made["small"].seconds == pytest.approx(29.1)
    assert found.around / made["small"].seconds == pytest.approx(10)
    assert found.kernels + found.around == pytest.approx(20.0)


def test_all_parts_of_a_call_that_took_less_get_more_in_proportion() -> None:
    kernels = {"large": kernel(6.0), "small": kernel(2.0, runs=10)}
    found, made = without_overhead(call(20.0, kernels, 1.0, 1.0), kernels)
    assert (made["large"].seconds, made["small"].seconds) == pytest.approx((12.0, 4.0))
    assert (found.kernels, found.between, found.around) == pytest.approx((16.0, 2.0, 2.0))


def test_a_call_without_kernels_is_left_alone() -> None:
    before = call(1.0, {}, 0.0, 3.0)
    assert without_overhead(before, {}) == (before, {})
