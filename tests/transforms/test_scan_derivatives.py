"""Derivatives of scan of all orders, in both modes, beside a loop in Python and finite differences."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from tests.support.loops import CASES, EXACT, W, all_close, both, by_python, floats_of, loop, python_gradient, some
from xlamini import grad, jit, jvp, lax
from xlamini.core.tracing.tracer import aval_of

STEP = 1e-5
FINITE = 2e-6
OPTIONS = [{}, {"reverse": True}, {"unroll": 2}, {"unroll": 3, "reverse": True}, {"unroll": 0}]


@pytest.fixture(autouse=True)
def in_double() -> Iterator[None]:
    with xlamini.enable_x64(True):
        yield


def waves(args: Any) -> tuple[Any, ...]:
    """A direction for each argument."""
    return tuple(np.cos(np.arange(x.size)).reshape(x.shape) for x in args)


def along(f: Callable[..., Any], directions: Any) -> Callable[..., Any]:
    """The derivative of `f` in these directions, by reverse mode."""
    places = tuple(range(len(directions)))
    return lambda *xs: sum((g * t).sum() for g, t in zip(grad(f, places)(*xs), directions, strict=True))


def forward(f: Callable[..., Any], directions: Any) -> Callable[..., Any]:
    """The same by forward mode."""
    return lambda *xs: jvp(f, xs, directions)[1]


def slope(f: Callable[..., Any], args: Any, directions: Any) -> Any:
    """The same by central differences."""
    ahead, behind = ([x + s * STEP * d for x, d in zip(args, directions, strict=True)] for s in (1, -1))
    return (f(*ahead) - f(*behind)) / (2 * STEP)


@pytest.mark.sample(15)
@pytest.mark.parametrize("name", CASES)
def test_beside_finite_differences(name: str) -> None:
    of_scan, of_python = both(CASES[name])
    args = floats_of(CASES[name])
    expected = slope(of_python, args, waves(args))
    assert_close(forward(of_scan, waves(args))(*args), expected, FINITE)
    assert_close(along(of_scan, waves(args))(*args), expected, FINITE)


@pytest.mark.sample(15)
@pytest.mark.parametrize("name, options", some(OPTIONS, 2), ids=str)
def test_gradients_beside_the_loop_in_python(name: str, options: dict[str, Any]) -> None:
    of_scan, of_python = both(CASES[name], **options)
    args = floats_of(CASES[name])
    places = tuple(range(len(args)))
    expected = jit(grad(of_python, places)) if options.get("reverse") else python_gradient(name)
    all_close(jit(grad(of_scan, places))(*args), expected(*args))


@pytest.mark.sample(4)
@pytest.mark.parametrize("name, place", some(range(3), 1))
def test_gradients_of_each_operand_alone(name: str, place: int) -> None:
    of_scan, _ = both(CASES[name])
    args = floats_of(CASES[name])
    expected = python_gradient(name)(*args)
    all_close(grad(of_scan, place)(*args), expected[place])


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_second_derivatives(name: str) -> None:
    of_scan, _ = both(CASES[name])
    args = floats_of(CASES[name])
    t = waves(args)
    once = jit(along(of_scan, t))
    places = tuple(range(len(args)))
    expected = jit(grad(once, places))(*args)
    assert_close(sum((g * d).sum() for g, d in zip(expected, t, strict=True)), slope(once, args, t), FINITE)
    all_close(jit(grad(forward(of_scan, t), places))(*args), expected, 1e-8)
    assert_close(forward(forward(of_scan, t), t)(*args), slope(once, args, t), FINITE)


@pytest.mark.full
@pytest.mark.parametrize("name", list(CASES)[::2])
def test_third_derivatives(name: str) -> None:
    of_scan, _ = both(CASES[name])
    args = floats_of(CASES[name])
    t = waves(args)
    twice = jit(along(forward(of_scan, t), t))
    expected = slope(twice, args, t)
    assert_close(along(twice, t)(*args), expected, 1e-4)
    assert_close(jit(forward(along(along(of_scan, t), t), t))(*args), expected, 1e-4)


@pytest.mark.full
@pytest.mark.parametrize("name", ["counting", "hoistable"])
def test_jacobians_and_hessians(name: str) -> None:
    case = CASES[name]

    def of_w(scan: Callable[..., Any]) -> Callable[..., Any]:
        run = loop(case, scan)
        return lambda w: [x for x in xlamini.tree.leaves(run(w, case.init, case.xs)) if aval_of(x).dtype.kind == "f"]

    expected = jit(xlamini.jacfwd(of_w(by_python)))(W)
    all_close(xlamini.jacfwd(of_w(lax.scan))(W), expected)
    all_close(jit(xlamini.jacrev(of_w(lax.scan)))(W), expected)
    second = jit(xlamini.hessian(of_w(by_python)))(W)
    all_close(xlamini.hessian(of_w(lax.scan))(W), second)


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_linearize_and_its_transpose(name: str) -> None:
    case = CASES[name]
    of_scan, _ = both(case)
    args = tuple(floats_of(case))
    directions = tuple(waves(args))
    out, tangent = jvp(of_scan, args, directions)
    value, linear_map = xlamini.linearize(of_scan, *args)
    assert_close(value, out, EXACT)
    assert_close(linear_map(*directions), tangent, EXACT)
    turned = xlamini.linear_transpose(linear_map, *args)(1.0)
    all_close(turned, xlamini.vjp(of_scan, *args)[1](1.0))
    pushed = jvp(lambda *xs: xlamini.vjp(of_scan, *xs)[1](1.0), args, directions)[1]
    places = tuple(range(len(args)))
    backward = grad(lambda *xs: jvp(of_scan, xs, directions)[1], places)(*args)
    all_close(pushed, backward)


@pytest.mark.sample(1)
@pytest.mark.parametrize("stopped", (0, 1))
def test_an_x_without_a_cotangent(stopped: int) -> None:
    def weighted(*xs: Any) -> Any:
        def body(carry: Any, pair: Any) -> Any:
            kept, constant = pair[1 - stopped], lax.stop_gradient(pair[stopped])
            return carry + kept * constant, None

        return lax.scan(body, 0.0, xs)[0]

    a, b = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    expected = [np.zeros(2), np.zeros(2)]
    expected[1 - stopped] = (a, b)[stopped]
    np.testing.assert_array_equal(grad(weighted, (0, 1))(a, b), expected)
