"""closure_convert, custom_gradient and stop_gradient."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import grad, jit, lax, numpy as jnp, vmap


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    with xlamini.enable_x64(True):
        yield


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-10, atol=1e-12)


def test_closure_convert() -> None:
    table = jnp.arange(3.0)

    def program(a: Any, n: Any) -> Any:
        converted, values = xlamini.closure_convert(lambda x: {"out": (x * a + jnp.sin(a) + n + table).sum()}, 1.0)
        assert [v.dtype for v in values] == [np.float64]
        return converted(2.0, *values)["out"]

    close(grad(program)(1.0, 2), 6 + 3 * np.cos(1.0))
    close(jit(vmap(grad(program), (0, None)))(jnp.ones(2), 2), [6 + 3 * np.cos(1.0)] * 2)
    converted, values = xlamini.closure_convert(lambda x: x * jnp.ones(2), 1.0)
    assert values == [] and converted(3.0).tolist() == [3.0, 3.0]


def test_custom_gradient() -> None:
    @xlamini.custom_gradient
    def g(x: Any, y: Any) -> Any:
        return {"out": x * y}, lambda ct: (10 * ct["out"] * y, ct["out"] * x)

    program = lambda x, y: g(x, y)["out"]
    for wrap in (lambda g: g, jit):
        assert [float(v) for v in wrap(grad(wrap(program), (0, 1)))(2.0, 3.0)] == [30.0, 2.0]
    xs = jnp.arange(3.0)
    close(grad(lambda x: vmap(program, (0, None))(x, 3.0).sum())(xs), [30.0] * 3)
    close(vmap(grad(program), (None, 0))(2.0, xs), 10 * np.arange(3.0))
    close(grad(grad(program), 1)(2.0, 3.0), 10.0)
    assert float(grad(xlamini.custom_gradient(lambda x: (x, lambda ct: 5 * ct)))(2.0)) == 5.0
    gradient = grad(lambda d: xlamini.custom_gradient(lambda d: (d["a"], lambda ct: {"a": 7 * ct}))(d))({"a": 1.0})
    assert float(gradient["a"]) == 7.0


def test_stop_gradient() -> None:
    close(grad(lambda x: x * lax.stop_gradient(x))(3.0), 3.0)
