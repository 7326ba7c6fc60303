"""Expressions of the public faces give JAX's values, shapes, dtypes and weak types: tests/golden/expressions/*.txt."""
from __future__ import annotations

import contextlib
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
_TRIANGLE, _NORM = "the derivative is that of the triangle that is read", "0 where the length is 0"
_NUMBER = "a number that the dtype does not hold is an OverflowError"
_VECTORS = "0 at equal values, for terms that the choice of vectors decides"
_LIMIT, _LIMITS = "0 at minus infinity, the limit", "at the infinities, the limits"
_ENDS = "(jnp.array([-jnp.inf, 0.0, jnp.inf]))"
DIFFERENT = {
    "grad(lambda x: scipy_linalg.cholesky(x).sum())(A)": _TRIANGLE,
    "grad(lambda a: jnp.linalg.cholesky(a, symmetrize_input=False).sum())(A)": _TRIANGLE,
    "grad(lambda x: lax_linalg.eigh(x, symmetrize_input=False)[1][0])(A)": _TRIANGLE,
    "grad(lambda x: scipy_linalg.solve(x, b, assume_a='pos').sum())(A)": _TRIANGLE,
    "grad(lambda x: (lax_linalg.eigh(x)[0] ** 3).sum())(jnp.eye(2))": _VECTORS,
    "grad(lambda x: (lax_linalg.svd(x, full_matrices=False)[0] ** 3).sum())(jnp.eye(2))": _VECTORS,
    "initializers.xavier_normal(dtype='bfloat16')(K, (2, 3))": "rounded from the draw in float32",
    "grad(lambda a: jnp.linalg.norm(a))(jnp.zeros(3))": _NORM,
    "grad(lambda a: jnp.linalg.norm(a, 3))(jnp.zeros(3))": _NORM,
    "grad(lambda v: jnp.std(v).sum())(jnp.ones(3))": _NORM,
    "grad(lambda v: jnp.arctan2(v, v).sum())(jnp.array([0.0, 1.0]))": _NORM,
    "grad(lambda v: jnp.arctan2(v, 0.0).sum())(jnp.array([0.0, 1.0]))": _NORM,
    "grad(lambda v: jnp.arctan2(0.0, v))(0.0)": _NORM,
    'grad(lambda a: jnp.linalg.norm(a, "fro"))(jnp.zeros((2, 2)))': _NORM,
    **dict.fromkeys([f"nn.{f}(xs)" for f in ("silu", "swish", "mish", "gelu", "squareplus")], _LIMIT),
    "nn.gelu(xs, False)": _LIMIT,
    "nn.gelu(xs, approximate=False)": _LIMIT,
    "nn.soft_sign(xs)": _LIMITS,
    **dict.fromkeys([f"vmap(grad(nn.{f}))(xs)" for f in ("silu", "gelu")], _LIMIT),
    "vmap(grad(lambda v: nn.gelu(v, False)))(xs)": _LIMIT,
    **dict.fromkeys([f"vmap(grad(nn.{f})){_ENDS}" for f in ("silu", "swish", "mish", "gelu", "squareplus")], _LIMIT),
    **dict.fromkeys([f"vmap(grad(nn.{f})){_ENDS}" for f in ("soft_sign", "sparse_plus")], _LIMITS),
    "jnp.int8(1) + 300": _NUMBER,
    "jnp.full(2, -1, 'uint8')": _NUMBER,
    "jnp.arange(3, dtype='uint8') * -1": _NUMBER,
    "nn.squareplus(w.astype('bfloat16'))": "of large negative numbers, without cancellation",
    "nn.standardize(y, mean=1.0)": "the variance is about the given mean, as by JAX's algorithm 'stable'",
    "nn.standardize(y.astype('bfloat16'))": "the variance is not a difference of rounded means",
    "grad(lambda b: nn.logsumexp(u, b=b))(jnp.array([0.0, 2.0]))": "the derivative in a weight that is 0",
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


@pytest.mark.filterwarnings("ignore:.*64-bit dtypes are off:UserWarning", "ignore:Casting complex values")
@pytest.mark.parametrize(("file", "expression"), CASES, ids=[f"{file}: {each.text}" for file, each in CASES])
def test_is_what_jax_gives(file: str, expression: Expression) -> None:
    differs = expression.text in DIFFERENT
    weak = expression.family != "gradients" and not differs
    with pytest.raises((AssertionError, OverflowError)) if differs else contextlib.nullcontext():
        with xlamini.enable_x64(needs_x64(file)):
            found = described(eval(expression.text, known(file)))
        check(found, golden(file)[expression.text], weak, expression.tolerance or 0)


def test_every_expression_is_recorded() -> None:
    stale = [file for file in FILES if golden(file).keys() != {each.text for each in expressions(file)}]
    assert not stale, f"run tests/golden/record_expressions.py {' '.join(stale)} where JAX is installed"
