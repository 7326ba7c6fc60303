"""Rules of custom_vjp that read values: outside of jit they get the numbers of arguments, residuals and cotangents."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from xlamini import custom_vjp, grad, jit, numpy as jnp, vjp, vmap
from xlamini.errors import TracerBoolConversionError

Calls = list[Any]


def reading(calls: Calls) -> Any:
    """sin with a backward rule that NumPy computes, and that triples positive cotangents."""

    @custom_vjp
    def f(x: Any) -> Any:
        return jnp.sin(x)

    def fwd(x: Any) -> Any:
        calls.append(("fwd", float(np.asarray(x))))
        return f(x), jnp.cos(x)

    def bwd(cosine: Any, ct: Any) -> Any:
        calls.append(("bwd", float(ct)))
        if ct > 0:
            return (np.float32(3) * np.asarray(ct) * np.asarray(cosine),)
        return (ct * cosine,)

    f.defvjp(fwd, bwd)
    return f


COS = float(np.cos(np.float32(1)))


@pytest.mark.parametrize(
    ("run", "expected", "cotangents"),
    [
        (lambda f: grad(f)(1.0), 3 * COS, [1]),
        (lambda f: grad(lambda x: -2 * f(x))(1.0), -2 * COS, [-2]),
        (lambda f: vjp(f, 1.0)[1](2.0)[0], 6 * COS, [2]),
        (lambda f: xlamini.value_and_grad(lambda x, y: f(x) * y)(1.0, 2.0)[1], 6 * COS, [2]),
    ],
)
def test_a_backward_rule_reads_its_cotangent(
    run: Callable[[Any], Any], expected: float, cotangents: list[float]
) -> None:
    calls: Calls = []
    assert_close(run(reading(calls)), expected, 1e-5)
    assert ("fwd", 1.0) in calls
    assert [value for kind, value in calls if kind == "bwd"] == cotangents


def test_rules_in_a_chain_run_from_the_last_one_back() -> None:
    calls: Calls = []
    f = reading(calls)
    slope = grad(lambda x: f(f(x * 2)))(1.0)
    second = 3 * np.cos(np.sin(2.0))
    assert_close([value for kind, value in calls if kind == "bwd"], [1, second], 1e-5)
    assert_close(slope, 2 * second * np.cos(2.0) * 3, 1e-5)


def test_a_choice_is_made_anew_for_each_cotangent() -> None:
    _, pullback = vjp(reading([]), 1.0)
    assert_close([pullback(ct)[0] for ct in (1.0, -1.0, 2.0)], [3 * COS, -COS, 6 * COS], 1e-5)


def test_other_arguments_and_parts_of_the_program_are_differentiated_as_ever() -> None:
    f = reading([])
    w = np.array([1.0, -2.0], np.float32)
    slopes = grad(lambda w: f(w[0]) * jnp.exp(w[1]) + (w**2).sum())(w)
    assert_close(slopes, [3 * np.exp(-2.0) * COS + 2, np.sin(1) * np.exp(-2.0) - 4], 1e-5)


@pytest.mark.parametrize(
    ("around", "x"),
    [(lambda f: jit(grad(f)), 1.0), (lambda f: vmap(grad(f)), jnp.ones(3)), (lambda f: grad(jit(f)), 1.0)],
)
def test_a_value_that_is_not_there_is_an_error(around: Callable[[Any], Any], x: Any) -> None:
    @custom_vjp
    def f(x: Any) -> Any:
        return x * 2

    f.defvjp(lambda x: (f(x), None), lambda _, ct: (ct * 2 if ct > 0 else ct,))
    with pytest.raises(TracerBoolConversionError, match="is not known while"):
        around(f)(x)


def test_a_rule_runs_where_the_next_one_returns_none() -> None:
    """A rule may give numbers that are no gradients, such as the statistics of scaled 8-bit floats."""

    @xlamini.custom_vjp
    def kept(x: Any, largest: Any) -> Any:
        return x * 1.0

    @xlamini.custom_vjp
    def product(x: Any, y: Any) -> Any:
        return x * y

    kept.defvjp(lambda x, largest: (x * 1.0, x.max()), lambda largest, ct: (None, largest))
    product.defvjp(lambda x, y: (x * y, x), lambda x, ct: (None, x * ct))
    x = np.arange(3, dtype=np.float32)
    slope = xlamini.grad(lambda largest: product(kept(x, largest), x).sum())
    assert slope(0.0) == xlamini.jit(slope)(0.0) == 2  # as JAX gives


# --- backward rules get arrays


def noting(calls: Calls) -> Any:
    """sin(x) * y, whose rules note what they get."""

    @custom_vjp
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) * y

    def bwd(residuals: Any, ct: Any) -> Any:
        calls.append([*residuals, ct])
        x, y, two = residuals
        assert two == 2.0
        return np.asarray(ct) * np.cos(np.asarray(x)) * np.asarray(y), ct * jnp.sin(x)

    f.defvjp(lambda x, y: (f(x, y), (x, y, 2.0)), bwd)
    return f


def net(f: Any, x: Any) -> Any:
    a = jnp.tanh(x)
    b = f(a, x * 2)
    return (f(jnp.sin(b) * a, b + a) ** 2 + b * a).sum() + f(x, x)[0]


POINT = np.arange(1, 4, dtype=np.float32)
SLOPE = [11.44394, 10.840575, -2.80765]  # JAX 0.10.2


def are_arrays(call: Any) -> bool:
    return all(isinstance(x, xlamini.Array | float) and not isinstance(x, xlamini.core.Tracer) for x in call)


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (lambda f: grad(lambda x: net(f, x))(POINT), SLOPE),
        (lambda f: xlamini.value_and_grad(lambda x: net(f, x))(POINT)[1], SLOPE),
        (lambda f: vjp(lambda x: net(f, x), POINT)[1](2.0)[0], 2 * np.array(SLOPE)),
    ],
)
def test_each_call_of_a_rule_gets_arrays_once(run: Callable[[Any], Any], expected: Any) -> None:
    calls: Calls = []
    assert_close(run(noting(calls)), expected, 1e-5)
    assert len(calls) == 3 and all(map(are_arrays, calls))


def test_a_pullback_calls_the_rule_when_it_is_called() -> None:
    calls: Calls = []
    f = noting(calls)
    _, pullback = vjp(lambda x: f(x, x * 2), 1.0)
    assert not calls
    slope = 2 * np.cos(1.0) + 2 * np.sin(1.0)
    assert_close([pullback(1.0)[0], pullback(3.0)[0]], [slope, 3 * slope], 1e-6)
    assert [float(call[-1]) for call in calls] == [1, 3]


def test_a_pullback_serves_residuals_of_another_point_and_traced_ones() -> None:
    f = reading_none()
    _, pullback = vjp(lambda x: f(x * 2), 1.0)
    double = xlamini.tree.map(lambda r: r * 2, pullback)
    assert_close(double(1.0)[0], 2 * np.cos(4.0), 1e-6)
    assert_close(jit(lambda pullback, ct: pullback(ct))(double, 3.0)[0], 6 * np.cos(4.0), 1e-6)
    assert_close(vmap(pullback)(POINT)[0], 2 * np.cos(2.0) * POINT, 1e-6)


def reading_none() -> Any:
    f = custom_vjp(lambda x: jnp.sin(x))
    f.defvjp(lambda x: (jnp.sin(x), x), lambda x, ct: (ct * jnp.cos(x),))
    return f


def test_a_kept_cotangent_is_an_array() -> None:
    kept: list[Any] = []
    f = custom_vjp(lambda x: x * 2)
    f.defvjp(lambda x: (x * 2, None), lambda _, ct: (kept.append(ct), ct * 2)[1:])
    assert_close(grad(lambda x: 3 * f(x * x))(2.0), 24, 0)
    assert_close(kept[0] + 1, 4, 0)


def test_symbolic_zeros_and_unused_calls() -> None:
    seen: list[Any] = []

    def bwd(_: Any, cts: Any) -> Any:
        seen.append([isinstance(ct, xlamini.custom_derivatives.SymbolicZero) for ct in cts])
        return cts[0], None

    pair = custom_vjp(lambda x, y: (x, y * 2))
    pair.defvjp(lambda x, y: ((x.value, y.value * 2), None), bwd, symbolic_zeros=True)
    assert_close(grad(lambda x: pair(x, x * 3)[0])(2.0), 1, 0)
    assert seen == [[False, True]]
    assert_close(grad(lambda x: (pair(x, x), x)[1])(2.0), 1, 0)
    assert len(seen) == 1


def test_the_backward_pass_prints_once_around_a_rule(capfd: pytest.CaptureFixture[str]) -> None:
    f = reading_none()

    @xlamini.custom_jvp
    def shown(x: Any) -> Any:
        return x * 1

    @shown.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        xlamini.debug.print("at {}", primals[0])
        return primals[0] * 1, tangents[0]

    grad(lambda x: f(shown(f(x))))(1.0)
    xlamini.effects_barrier()
    assert capfd.readouterr().out.count("at 0.841") == 1


@pytest.mark.parametrize(
    ("returned", "error"), [(lambda ct: ct[:2], ValueError), (lambda ct: ct.astype(int), TypeError)]
)
def test_what_a_rule_returns_is_checked(returned: Any, error: type[Exception]) -> None:
    f = custom_vjp(lambda x: x * 1)
    f.defvjp(lambda x: (x * 1, None), lambda _, ct: (returned(ct),))
    with pytest.raises(error, match="custom_vjp"):
        grad(lambda x: f(x).sum())(POINT)


def test_cotangents_may_be_ndarrays() -> None:
    calls: Calls = []
    f = noting(calls)
    _, pullback = vjp(lambda x: (f(x, x), x * 2), POINT)
    expected = POINT * (np.cos(POINT) * POINT + np.sin(POINT)) + 2
    assert_close(pullback((POINT, np.ones(3, np.float32)))[0], expected, 1e-5)
    assert len(calls) == 1


def test_a_rule_that_closes_over_a_traced_value_reads_its_cotangent() -> None:
    def loss(x: Any) -> Any:
        scale = xlamini.lax.stop_gradient(x) * 2
        f = custom_vjp(lambda x: x * 1)
        f.defvjp(lambda x: (x * 1, None), lambda _, ct: (ct * scale if ct > 2 else -ct * scale,))
        return 3 * f(x)

    assert_close(grad(loss)(5.0), 30, 0)
    assert_close(vjp(loss, 5.0)[1](-1.0)[0], 30, 0)
