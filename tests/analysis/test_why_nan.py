"""`debug.why_nan`: where a value or a gradient first became NaN or infinite, and the edit that mends it."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from xlamini import debug, grad, jit, lax, nn, numpy as jnp

X = np.array([1.0, 0.0, 4.0], np.float32)


def root(x: Any) -> Any:
    y = jnp.sqrt(x)
    return jnp.where(x > 0, y, 0.0).sum()


def in_scan(x: Any) -> Any:
    return lax.scan(lambda c, v: (c * jnp.log(v), None), 1.0, x - 0.5)[0]


FORWARD = {
    "log": (lambda x: jnp.log(x - 2).sum(), "log", (0,)),
    "division": (lambda x: (1 / x).sum(), "div", (1,)),
    "0 / 0": (lambda x: (x / x).sum(), "div", (1,)),
    "overflow": (lambda x: jnp.exp(x.astype(jnp.float16) * 5).sum(), "exp", (2,)),
    "acos": (jit(lambda x: jnp.arccos(x).sum()), "acos", (2,)),
    "scan": (in_scan, "log", ()),
    "softmax": (lambda x: (jnp.exp(x * 100) / jnp.exp(x * 100).sum()).sum(), "exp", (0,)),
}
BACKWARD = {
    "where": (root, "sqrt", (1,)),
    "root of a sum": (lambda x: jnp.sqrt(jnp.square(x * 0).sum()), "sqrt", ()),
    "power": (lambda x: (x**0.5).sum(), "pow", (1,)),
    "jit": (jit(root), "sqrt", (1,)),
}


@pytest.mark.parametrize("name", FORWARD)
def test_values(name: str) -> None:
    f, operation, index = FORWARD[name]
    assert not np.isfinite(np.asarray(f(jnp.asarray(X))))
    found = debug.why_nan(f)(jnp.asarray(X)).found
    assert found is not None
    assert (found.direction, found.place.primitive, found.index) == ("forward", operation, index)
    assert found.place.file == __file__


@pytest.mark.parametrize("name", BACKWARD)
def test_gradients_of_finite_values(name: str) -> None:
    f, operation, index = BACKWARD[name]
    assert np.isfinite(np.asarray(f(X))) and not np.isfinite(np.asarray(grad(f)(X))).all()
    found = debug.why_nan(f)(X).found
    assert found is not None
    assert (found.direction, found.place.primitive, found.index) == ("backward", operation, index)


def test_the_trap_of_where_and_its_mend() -> None:
    found = debug.why_nan(root)(X)
    assert found.found is not None and found.found.place.source == "y = jnp.sqrt(x)"
    text = repr(found)
    assert "sqrt has no finite derivative for 0.0; the gradient becomes nan at index (1,)" in text
    assert "return jnp.where(x > 0, y, 0.0).sum()" in text and "x = jnp.where(mask, x, 1.0)" in text
    mended = lambda x: jnp.where(x > 0, jnp.sqrt(jnp.where(x > 0, x, 1.0)), 0.0).sum()
    assert debug.why_nan(mended)(X).found is None
    np.testing.assert_allclose(grad(mended)(X), [0.5, 0, 0.25])


def test_iterations() -> None:
    found = debug.why_nan(in_scan)(X).found
    assert found is not None and found.place.iterations == (1,)
    assert found.reason == "gives nan for -0.5"


@pytest.mark.full
def test_finite_programs_and_bad_arguments() -> None:
    assert debug.why_nan(lambda x: nn.softmax(x).sum())(X).found is None
    assert repr(debug.why_nan(jnp.sin)(1.0)) == "no NaN and no infinity in the values or the gradient"
    assert debug.why_nan(lambda x: (x * 2).sum())(np.array([np.nan, 1.0], np.float32)).found is None
    assert debug.why_nan(jnp.sin)(1.0).as_dict() == {"found": None}
