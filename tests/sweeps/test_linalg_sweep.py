"""Functions of matrices over scales and kinds of matrices, beside NumPy in float64: values and slopes.

A row is a function, its reference, the kinds of matrices that it is tried with, and budgets in units of the dtype's
rounding error, relative to the largest element of the result. The nightly run takes all rows, the others a few.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import scipy.linalg

import xlamini as xl
import xlamini.numpy as jnp
from xlamini import lax
from xlamini.scipy import linalg

RANDOM = np.random.default_rng(0)
GENERAL = np.array([[2, -1, 0.5], [0.3, 1.5, -0.7], [1.1, 0.4, 3]])
TURN = np.linalg.qr(RANDOM.normal(size=(3, 3)))[0]
KINDS = {
    "general": GENERAL,
    "definite": GENERAL @ GENERAL.T,
    "equal": 2 * np.eye(3),
    "pair": (TURN * [3, 1, 1]) @ TURN.T,
    "singular": np.array([[1, 2, 3], [2, 4, 6], [1, 0, 1.0]]),
    "graded": np.diag([1e8, 1.0, 1e-8]) @ GENERAL @ np.diag([1e-8, 1.0, 1e8]),
    "close": np.full((3, 3), 41927.867) + 4.348 * np.eye(3),
    "zero": np.zeros((3, 3)),
}
SCALES = {"float32": (1.0, 1e-10, 1e10, 1e-25, 1e25), "float64": (1.0, 1e-60, 1e60, 1e-200, 1e200)}
SCALES |= {"complex64": SCALES["float32"], "complex128": SCALES["float64"]}
CHANGE = RANDOM.normal(size=(3, 3))


class Row(NamedTuple):
    """A function of square matrices; `degree` is the power of a factor that its result is multiplied by."""

    name: str
    function: Callable[[Any], Any]
    reference: Callable[[Any], Any]
    degree: float
    kinds: tuple[str, ...]
    budget: float = 30
    slopes: tuple[str, ...] = ("general", "definite")
    hermitian: bool = False
    factors: int = 1
    """How many elements, or inverses of them, are multiplied on the way to a slope."""


REGULAR = ("general", "definite", "equal", "pair")
ALL = (*REGULAR, "singular", "zero")
SYMMETRIC = ("definite", "equal", "pair")


def _norm(order: Any, *slopes: str) -> Row:
    kinds = REGULAR if order == -2 else ALL
    f, g = (lambda a: jnp.linalg.norm(a, order)), (lambda a: np.linalg.norm(_long(a, order), order).astype(float))
    return Row(f"norm: {order}", f, g, 1, kinds, slopes=("general", *slopes))


def _long(a: Any, order: Any) -> Any:
    """More digits and range, which LAPACK has not."""
    return a if order in ("nuc", 2, -2) else a.astype(np.clongdouble if np.iscomplexobj(a) else np.longdouble)


def _rebuilt_svd(a: Any) -> Any:
    u, s, vh = jnp.linalg.svd(a, full_matrices=False)
    return (u * s.astype(a.dtype)) @ vh


def _beyond(a: Any, module: Any) -> Any:
    """The projector on what the first two columns do not span, by the vectors that complete U."""
    others = module.linalg.svd(a[:, :2], full_matrices=True)[0][:, 2:]
    return others @ others.conj().T


def _rebuilt_eigh(a: Any) -> Any:
    w, v = jnp.linalg.eigh(a)
    return (v * w.astype(a.dtype)) @ v.conj().T


def _factor(a: Any) -> Any:
    return np.linalg.cholesky((a + a.conj().T) / 2)


ROWS = [
    Row("det", jnp.linalg.det, np.linalg.det, 3, (*REGULAR, "graded", "close"), 300, REGULAR),
    Row(
        "det: two rows", lambda a: jnp.linalg.det(a[:2, :2]), lambda a: np.linalg.det(a[:2, :2]), 2,
        (*REGULAR, "close"), 300,
    ),
    Row("slogdet", lambda a: jnp.linalg.slogdet(a)[1], lambda a: np.linalg.slogdet(a)[1], 0, REGULAR, slopes=REGULAR),
    Row("inv", jnp.linalg.inv, np.linalg.inv, -1, REGULAR, slopes=REGULAR),
    Row("solve", lambda a: jnp.linalg.solve(a, a[:, ::-1].T), lambda a: np.linalg.solve(a, a[:, ::-1].T), 0, REGULAR),
    Row("pinv", jnp.linalg.pinv, np.linalg.pinv, -1, (*REGULAR, "singular", "zero"), 100, slopes=REGULAR),
    Row(
        "lstsq", lambda a: jnp.linalg.lstsq(a, a[:, :1] + a[:, 1:2])[0],
        lambda a: np.linalg.lstsq(a, a[:, :1] + a[:, 1:2], rcond=None)[0], 0, REGULAR, slopes=REGULAR, factors=2,
    ),
    *(_norm(order, "definite", "pair") for order in (None, 1, np.inf, "nuc", "fro")),
    *(_norm(order) for order in (2, -2)),
    Row("cond", jnp.linalg.cond, np.linalg.cond, 0, REGULAR, slopes=("general",)),
    Row("svdvals", jnp.linalg.svdvals, lambda a: np.linalg.svd(a)[1], 1, ALL, slopes=("general",)),
    Row("svd: rebuilt", _rebuilt_svd, lambda a: a, 1, ALL, slopes=("general", "definite")),
    Row(
        "svd: completed", lambda a: _beyond(a, jnp), lambda a: _beyond(a, np), 0, REGULAR,
        slopes=("general", "definite"),
    ),
    Row(
        "eigvalsh", jnp.linalg.eigvalsh, np.linalg.eigvalsh, 1, (*SYMMETRIC, "zero"), slopes=("definite",),
        hermitian=True,
    ),
    Row("eigh: rebuilt", _rebuilt_eigh, lambda a: a, 1, (*SYMMETRIC, "zero"), slopes=("definite",), hermitian=True),
    Row("cholesky", jnp.linalg.cholesky, _factor, 0.5, SYMMETRIC, slopes=SYMMETRIC, hermitian=True),
    Row("qr: rebuilt", lambda a: jnp.matmul(*jnp.linalg.qr(a)), lambda a: a, 1, ALL, slopes=REGULAR),
    Row("lu: rebuilt", lambda a: jnp.matmul(*linalg.lu(a, permute_l=True)), lambda a: a, 1, ALL, slopes=REGULAR),
    Row(
        "polar", lambda a: linalg.polar(a, method="svd")[1], lambda a: scipy.linalg.polar(a)[1], 1, REGULAR,
        slopes=REGULAR,
    ),
    Row("matrix_power", lambda a: jnp.linalg.matrix_power(a, 2), lambda a: a @ a, 2, ALL, slopes=REGULAR),
    Row("multi_dot", lambda a: jnp.linalg.multi_dot([a, a, a]), lambda a: a @ a @ a, 3, ALL, slopes=REGULAR),
    Row("triangular_solve", lambda a: lax.linalg.triangular_solve(a, a, left_side=True, lower=True),
        lambda a: scipy.linalg.solve_triangular(a, a, lower=True), 0, REGULAR, slopes=REGULAR),
    Row("lax.eigh", lambda a: lax.linalg.eigh(a, symmetrize_input=False)[1], np.linalg.eigvalsh, 1, SYMMETRIC,
        slopes=("definite",), hermitian=True),
]  # fmt: skip
CASES = [(row, dtype) for row in ROWS for dtype in SCALES]
IDS = [f"{row.name}, {dtype}" for row, dtype in CASES]


def matrices(row: Row, kinds: tuple[str, ...], dtype: str) -> list[tuple[str, Any]]:
    """Scaled matrices in the dtype whose results are in its range too; complex ones are turned by a phase."""
    degree = max(abs(row.degree), abs(row.degree - 1), row.factors)  # a slope is a result by an element
    limits = np.finfo(dtype)
    phase = np.exp(0.4j) if "complex" in dtype and not row.hermitian else 1
    found = []
    for kind, scale in ((k, s) for k in kinds for s in SCALES[dtype]):
        size = abs(np.log10(scale)) * degree + 15
        if size < np.log10(limits.max) - 2:
            found.append((kind, (KINDS[kind] * phase * scale).astype(dtype)))
    return found


def wide(a: Any) -> Any:
    return np.asarray(a).astype(np.complex128 if np.iscomplexobj(a) else np.float64)


def check(found: Any, wanted: Any, budget: float) -> None:
    size = max(np.abs(wanted).max(), float(np.finfo(found.dtype).tiny))
    assert np.isfinite(found).all()
    error = np.abs(wide(found) - wanted).max() / size / np.finfo(found.dtype).eps
    assert error <= budget, f"{error:.0f} units of rounding"


@pytest.mark.sample(60, full=12)
@pytest.mark.parametrize(("row", "dtype"), CASES, ids=IDS)
def test_values(row: Row, dtype: str) -> None:
    with xl.enable_x64(dtype in ("float64", "complex128")):
        inputs = [a for _, a in matrices(row, row.kinds, dtype)]
        wanted = [row.reference(wide(a)) for a in inputs]
        condition = [1e5 if kind == "close" else 1 for kind, _ in matrices(row, row.kinds, dtype)]
        stacked = xl.jit(xl.vmap(row.function))(np.stack(inputs))
        alone = xl.jit(row.function)
        for i, a in enumerate(inputs):
            check(np.asarray(stacked[i]), wanted[i], row.budget * condition[i])
            check(np.asarray(alone(a)), wanted[i], row.budget * condition[i])
        check(np.asarray(row.function(jnp.asarray(inputs[0]))), wanted[0], row.budget)


@pytest.mark.sample(60, full=12)
@pytest.mark.parametrize(("row", "dtype"), CASES, ids=IDS)
def test_slopes(row: Row, dtype: str) -> None:
    """Along one direction, forward and in reverse, beside central differences of the reference at scale 1."""
    with xl.enable_x64(dtype in ("float64", "complex128")):
        change = CHANGE + CHANGE.T if row.hermitian else CHANGE * (np.exp(0.1j) if "complex" in dtype else 1)
        weights = np.arange(1.0, 10)

        def summed(out: Any, module: Any) -> Any:
            flat = module.ravel(module.asarray(out))
            return (module.asarray(weights[: flat.size], flat.real.dtype) * (flat.real + 2 * flat.imag)).sum()

        slope = xl.jit(lambda a, d: xl.jvp(lambda a: summed(row.function(a), jnp), (a,), (d,))[1])
        gradient = xl.jit(xl.grad(lambda a: summed(row.function(a), jnp)))
        for _, a in matrices(row, row.slopes, dtype):
            scale = np.abs(a).max()
            d = (change * scale).astype(dtype)
            unit, step = wide(a) / float(scale), 1e-6 * wide(d) / float(scale)
            wanted = (summed(row.reference(unit + step), np) - summed(row.reference(unit - step), np)) / 2e-6
            wanted = wanted * float(scale) ** row.degree
            eps = np.finfo(dtype).eps
            close = {"rtol": 1e3 * eps + 1e-6, "atol": (300 * eps + 1e-7) * float(scale) ** row.degree}
            np.testing.assert_allclose(float(slope(a, d)), wanted, **close)
            back = (wide(gradient(a)) * wide(d)).real.sum()
            np.testing.assert_allclose(back, wanted, **close)
