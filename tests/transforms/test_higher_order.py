"""Every way to run a function inside every other one, differentiated, mapped and compiled, beside plain Python."""
from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from tests.support.higher_order import SIZE, WRAPS, base

POINT, DIRECTION = np.array([0.37, -0.61]), np.array([0.8, -0.3])
EXAMPLES = np.array([[0.37, -0.61], [0.05, 0.9], [-0.4, 0.2]])
STEP = 1e-5
NO_FORWARD = {"custom_vjp"}

PAIRS = list(itertools.product(WRAPS, WRAPS))


@pytest.fixture(autouse=True)
def _wide() -> Iterator[None]:
    with xlamini.enable_x64(True):
        yield


def functions(*names: str) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """The base function in these wraps, outermost first: by xlamini, and plain."""
    traced = plain = base
    for name in reversed(names):
        traced, plain = WRAPS[name].traced(traced), WRAPS[name].plain(plain)
    return traced, plain


def slope(fun: Callable[[Any], Any], x: Any, t: Any) -> Any:
    return (np.asarray(fun(x + STEP * t)) - np.asarray(fun(x - STEP * t))) / (2 * STEP)


def forward_goes(names: tuple[str, ...]) -> bool:
    return not NO_FORWARD.intersection(names)


def reverse_goes(names: tuple[str, ...]) -> bool:
    return all(WRAPS[name].reverse for name in names)


def check(names: tuple[str, ...], compiled: bool) -> None:
    traced, plain = functions(*names)
    jit = xlamini.jit if compiled else lambda f: f
    assert_close(jit(traced)(POINT), plain(POINT), 1e-9, "value")
    assert_close(jit(xlamini.vmap(traced))(EXAMPLES), np.stack([plain(x) for x in EXAMPLES]), 1e-9, "vmap")
    expected = slope(plain, POINT, DIRECTION)
    if forward_goes(names):
        _, tangent = jit(lambda x, t: xlamini.jvp(traced, (x,), (t,)))(POINT, DIRECTION)
        assert_close(tangent, expected, 1e-6, "jvp")
    if reverse_goes(names):
        check_reverse(traced, plain, jit)


def check_reverse(traced: Any, plain: Any, jit: Any) -> None:
    def loss(x: Any) -> Any:
        return (traced(x) ** 2).sum()

    rows = [slope(lambda x: np.sum(plain(x) ** 2), POINT, e) for e in np.eye(SIZE)]
    gradient = jit(xlamini.grad(loss))
    assert_close(gradient(POINT), np.array(rows), 1e-6, "grad")
    mapped = jit(xlamini.vmap(xlamini.grad(loss)))(EXAMPLES)
    summed = jit(xlamini.grad(lambda xs: xlamini.vmap(loss)(xs).sum()))(EXAMPLES)
    assert_close(mapped[0], np.array(rows), 1e-6, "vmap of grad")
    assert_close(summed, mapped, 1e-9, "grad of vmap")
    second = jit(xlamini.grad(lambda x: (gradient(x) * DIRECTION).sum()))(POINT)
    assert_close(second, slope(gradient, POINT, DIRECTION), 1e-6, "grad of grad")


@pytest.mark.slow
@pytest.mark.parametrize("name", WRAPS)
def test_alone(name: str) -> None:
    check((name,), compiled=False)
    check((name,), compiled=True)


@pytest.mark.slow
@pytest.mark.parametrize("outer, inner", PAIRS)
def test_one_in_another(outer: str, inner: str, request: pytest.FixtureRequest) -> None:
    """All pairs with --all-rows; else a third of them, each wrap outside and inside several others."""
    place = PAIRS.index((outer, inner))
    if not request.config.getoption("--all-rows") and (place // len(WRAPS) + place) % 3:
        pytest.skip("only with --all-rows")
    check((outer, inner), compiled=place % 2 == 0)


@pytest.mark.slow
@pytest.mark.parametrize(
    "names",
    [
        ("scan", "scan", "cond", "custom_vjp"),
        ("cond", "scan", "checkpoint", "custom_jvp"),
        ("vmap", "bounded while", "cond", "scan"),
        ("checkpoint", "scan", "vmap", "collectives"),
        ("custom_vjp", "fori", "custom_root", "jit"),
        ("while", "switch", "scan back", "map"),
    ],
)
def test_four_deep(names: tuple[str, ...]) -> None:
    check(names, compiled=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_random_nests(seed: int) -> None:
    """Three to five wraps, chosen by chance."""
    choice = random.Random(seed)
    check(tuple(choice.choices(list(WRAPS), k=choice.randint(3, 5))), compiled=True)


@pytest.mark.sample(6)
@pytest.mark.parametrize("name", [name for name, wrap in WRAPS.items() if wrap.reverse])
def test_third_derivatives(name: str) -> None:
    traced, _ = functions(name)

    def along(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
        return xlamini.grad(lambda x: (fun(x) * DIRECTION).sum())

    second = along(along(traced))
    assert_close(xlamini.jit(along(second))(POINT), directional_transpose(second), 1e-5)


def directional_transpose(fun: Callable[[Any], Any]) -> Any:
    """The gradient of `fun(x) . DIRECTION`, by finite differences."""
    return np.array([slope(lambda x: np.sum(np.asarray(fun(x)) * DIRECTION), POINT, e) for e in np.eye(SIZE)])
