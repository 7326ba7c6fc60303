"""linear_call: a linear function whose transpose the user gives."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.custom_derivatives import linear_call
from xlamini.errors import ShapeError


def divided(r: Any, x: Any) -> Any:
    return x / r


def ten_times(r: Any, ct: Any) -> Any:
    """A wrong transpose, by which it is seen that it is used."""
    return 10.0 * ct / r


def div_add(x: Any, denom: Any) -> Any:
    return x + linear_call(divided, ten_times, denom, x)


def transpose(f: Callable[..., Any], example: Any) -> Callable[..., Any]:
    return lambda ct: xlamini.linear_transpose(f, example)(ct)[0]


def test_values_and_transposes_alternate() -> None:
    """The numbers are JAX's."""

    def f(x: Any) -> Any:
        return div_add(x, 3.0)

    assert float(f(9.0)) == 12 and float(xlamini.jit(f)(9.0)) == 12
    assert float(transpose(f, 1.0)(18.0)) == 78
    assert float(transpose(transpose(f, 1.0), 1.0)(18.0)) == 24
    np.testing.assert_allclose(xlamini.grad(f)(9.0), 13 / 3, rtol=1e-6)
    np.testing.assert_allclose(xlamini.jit(xlamini.grad(f))(9.0), 13 / 3, rtol=1e-6)
    np.testing.assert_allclose(xlamini.jvp(f, (9.0,), (1.0,)), (12, 4 / 3), rtol=1e-6)


@pytest.mark.full
def test_inside_other_constructs() -> None:
    x, r = jnp.arange(3.0), jnp.arange(1.0, 4.0)
    np.testing.assert_allclose(xlamini.vmap(div_add)(x, r), x + x / r, rtol=1e-6)
    np.testing.assert_allclose(xlamini.vmap(xlamini.grad(div_add))(x, r), 1 + 10 / r, rtol=1e-6)
    total = xlamini.grad(lambda x: xlamini.vmap(div_add, (None, 0))(x, r).sum())(2.0)
    np.testing.assert_allclose(total, (1 + 10 / r).sum(), rtol=1e-6)

    def looped(x: Any) -> Any:
        return lax.scan(lambda c, _: (linear_call(divided, ten_times, 2.0, c), None), x, length=3)[0]

    np.testing.assert_allclose(xlamini.grad(looped)(1.0), 125.0)
    square = xlamini.jvp(xlamini.grad(lambda x: linear_call(divided, ten_times, 2.0, x) ** 2), (1.0,), (1.0,))
    np.testing.assert_allclose(square, (5, 5))
    held = xlamini.grad(xlamini.checkpoint(lambda x: div_add(jnp.sin(x), 2.0)))(0.0)
    np.testing.assert_allclose(held, 6.0)


def test_trees_and_values_closed_over() -> None:
    y = jnp.arange(1.0, 3.0)

    def forward(r: Any, x: Any) -> Any:
        return {"a": x[0] * r["s"] * y, "b": x[1]}

    def back(r: Any, ct: Any) -> Any:
        return (ct["a"] * y).sum() * r["s"], ct["b"]

    def f(x: Any, s: Any) -> Any:
        return linear_call(forward, back, {"s": s}, x)

    out = f((2.0, 3.0), 4.0)
    np.testing.assert_allclose(out["a"], 8 * y)
    slopes = xlamini.grad(lambda x: f(x, 4.0)["a"].sum() + 7 * f(x, 4.0)["b"])((2.0, 3.0))
    np.testing.assert_allclose(slopes, (12, 7))
    batched = xlamini.vmap(xlamini.grad(lambda s, x: f((x, x), s)["a"].sum(), 1), (None, 0))(4.0, y)
    np.testing.assert_allclose(batched, [12, 12])


def test_integers_have_no_cotangent() -> None:
    def f(x: Any) -> Any:
        return linear_call(lambda r, v: (v[0] * r, v[1]), lambda r, ct: (ct[0] * r, ct[1]), 2.0, (x, 3))[0]

    np.testing.assert_allclose(xlamini.grad(f)(1.0), 2.0)


def test_errors() -> None:
    for wrong in (lambda: xlamini.grad(div_add, 1)(9.0, 3.0), lambda: xlamini.jvp(div_add, (9.0, 3.0), (1.0, 1.0))):
        with pytest.raises(TypeError, match="divided is differentiated in a residual argument"):
            wrong()
    with pytest.raises(TypeError, match="must return the structure of linear_args"):
        linear_call(lambda r, x: x[0], lambda r, ct: ct, 2.0, (1.0, 2.0))
    with pytest.raises(ShapeError, match=r"linear_args\[0\] is .*\[\].*they must be of one type"):
        linear_call(lambda r, x: x[0], lambda r, ct: (jnp.ones(2) * ct,), 2.0, (1.0,))
    with pytest.raises(TypeError, match="linear_call takes a function, got None"):
        linear_call(None, divided, 1.0, 2.0)  # type: ignore[arg-type]
