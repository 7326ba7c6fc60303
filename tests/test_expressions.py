"""Expressions of the public faces give JAX's values, shapes, dtypes and weak types: tests/golden/expressions/*.txt."""
from __future__ import annotations

import functools
import json
import sys
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy
from tests.support.paths import GOLDEN

sys.path.append(str(GOLDEN))
from expressions import FILES, FOLDER, Expression, described, expressions, names, needs_x64

TOLERANCE = {"float32": 3e-6, "complex64": 3e-6, "float16": 2e-3, "bfloat16": 1e-2}
WIDE = 1e-12
DIFFERENT = {
    "grad(lambda x: scipy_linalg.cholesky(x).sum())(A)": "the derivative is that of the triangle that is read",
    "nn.mish(xs)": "0 at minus infinity, the limit",
    "vmap(grad(nn.silu))(jnp.array([-jnp.inf, 0.0, jnp.inf]))": "0 at minus infinity, the limit",
    "vmap(grad(nn.soft_sign))(jnp.array([-jnp.inf, 0.0, jnp.inf]))": "0 at the infinities, the limit",
    "vmap(grad(nn.sparse_plus))(jnp.array([-jnp.inf, 0.0, jnp.inf]))": "0 and 1 at the infinities, the limits",
}
"""Expressions whose numbers are not JAX's by design, and why; docs/coming-from-jax.md says so too."""
CASES = [(file, each) for file in FILES for each in expressions(file)]


@functools.cache
def golden(file: str) -> dict[str, Any]:
    return json.loads((FOLDER / f"{file}.json").read_text())


@functools.cache
def known(file: str) -> dict[str, Any]:
    return names(xlamini, file)


def tolerance_of(dtype: str, least: float) -> float:
    """Relative and absolute; `least` is the family's, for floats that are not of 64 bits."""
    if dtype in ("float64", "complex128"):
        return WIDE
    return max(TOLERANCE[dtype], least) if dtype in TOLERANCE else 0


def check(found: Any, wanted: Any, weak: bool, least: float) -> None:
    """Results described by `described` are the same, up to rounding; `weak` says whether weak types are compared."""
    if isinstance(wanted, dict):
        weak = weak and wanted["dtype"] != "bool"  # which promotes like a strong one in either case
        same = ("dtype", "shape", "weak") if weak else ("dtype", "shape")
        assert [found[k] for k in same] == [wanted[k] for k in same]
        tolerance = tolerance_of(wanted["dtype"], least)
        np.testing.assert_allclose(found["elements"], wanted["elements"], rtol=tolerance, atol=tolerance)
    elif isinstance(wanted, list):
        assert len(found) == len(wanted)
        for f, w in zip(found, wanted, strict=True):
            check(f, w, weak, least)
    else:
        assert found == wanted


@pytest.mark.filterwarnings("ignore:.*64-bit dtypes are off:UserWarning")
@pytest.mark.parametrize(("file", "expression"), CASES, ids=[f"{file}: {each.text}" for file, each in CASES])
def test_is_what_jax_gives(file: str, expression: Expression) -> None:
    with xlamini.enable_x64(needs_x64(file)):
        found = described(eval(expression.text, known(file)))
    if expression.text in DIFFERENT:
        with pytest.raises(AssertionError):
            check(found, golden(file)[expression.text], False, expression.tolerance or 0)
        return
    check(found, golden(file)[expression.text], expression.family != "gradients", expression.tolerance or 0)


def test_every_expression_is_recorded() -> None:
    stale = [file for file in FILES if golden(file).keys() != {each.text for each in expressions(file)}]
    assert not stale, f"run tests/golden/record_expressions.py {' '.join(stale)} where JAX is installed"
