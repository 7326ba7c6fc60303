"""Random nested programs: NumPy, finite differences, jit, vmap and derivatives agree.

The quick tier runs four, `--full` 300, `--all-rows` 10,000. A failure prints the smallest program that fails.
"""
from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.support import random_programs
from tests.support.checks import UNOPTIMIZED
from tests.support.random_programs import (
    DERIVATIVES,
    NUMPY,
    OURS,
    ROUNDING,
    SECOND,
    Program,
    evaluate,
    forms,
    is_near_a_corner,
    program_of,
    shrunk,
)
from tests.support.tiers import ALL, FULL, QUICK, tier_of
from xlamini.core.flags.compile_flags import disable_most_optimizations

COUNTS = {QUICK: 4, FULL: 300, ALL: 10_000}
X = np.array([0.3, -0.8, 1.1])


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "seed" in metafunc.fixturenames:
        seeds = range(COUNTS[tier_of(metafunc.config)])
        slow = [pytest.mark.slow]
        metafunc.parametrize("seed", [pytest.param(n, marks=slow if n >= COUNTS[QUICK] else []) for n in seeds])


def ours(program: Program) -> Callable[[Any], Any]:
    return lambda x: evaluate(program, (x,), OURS)


def in_numpy(program: Program, x: np.ndarray) -> np.ndarray:
    return np.asarray(evaluate(program, (x,), NUMPY))


def compiled(fun: Callable[..., Any]) -> Callable[..., Any]:
    return xlamini.jit(fun, compiler_options=UNOPTIMIZED)


def disagreement(program: Program) -> str:
    """In which way a program is computed wrongly; empty if it is right everywhere."""
    fun, tolerance = ours(program), _tolerance(program)
    batch = np.stack([X, X[::-1] * 0.7])
    if any(is_near_a_corner(program, x) for x in batch):
        return ""
    expected = in_numpy(program, X)
    if not _near(fun(jnp.asarray(X)), expected, tolerance):
        return "eager differs from NumPy"
    if not _gives(fun, X, expected, tolerance):
        return "jit differs from NumPy"
    if not _gives(xlamini.vmap(fun), batch, np.stack([in_numpy(program, x) for x in batch]), tolerance):
        return "vmap differs from a loop"
    return _wrong_derivative(program, fun)


def _gives(fun: Callable[..., Any], x: np.ndarray, expected: np.ndarray, tolerance: float) -> bool:
    """Whether a function gives this when it is compiled without optimizations, or else with them.

    XLA may compute a value twice. Without optimizations the two may be rounded differently, so that a maximum of
    complex products' real parts equals none of them, and its derivative is 0. JAX gives NaN there.
    """
    if _near(compiled(fun)(x), expected, tolerance):
        return True
    with disable_most_optimizations(False):
        return _near(xlamini.jit(fun)(x), expected, tolerance)


def _tolerance(program: Program) -> float:
    found = forms(program)
    return 2e-2 if found & ROUNDING else 1e-5 if found & SECOND else 1e-6 if found & {*DERIVATIVES} else 1e-11


def _wrong_derivative(program: Program, fun: Callable[[Any], Any]) -> str:
    """How a product of the Jacobian differs from finite differences, or from itself compiled."""
    found, forward = forms(program), "while" in forms(program)
    if forward and "custom_vjp" in found:
        return ""
    along = np.array([0.5, -1.0, 0.25])
    product = (lambda x: xlamini.jvp(fun, (x,), (along,))[1]) if forward else (
        lambda x: xlamini.vjp(fun, x)[1](jnp.asarray(along))[0]
    )
    slope = compiled(product)(X)
    once_more = zlib.crc32(repr(program).encode()) % 3 == 0  # with all optimizations, which takes longest to compile
    if once_more and not _near(product(jnp.asarray(X)), slope, 2e-2 if found & ROUNDING else 1e-10):
        return "a derivative differs under jit"
    if found & {*DERIVATIVES, *ROUNDING}:
        return ""  # differences of differences, and of steps, are too rough
    jacobian, coarse = (_jacobian(program, step) for step in (1e-3, 2e-3))
    if not _near(jacobian, coarse, 1e-7):
        return ""  # a corner is near
    return "" if _near(slope, jacobian @ along if forward else along @ jacobian, 1e-6) else "a derivative is wrong"


def _jacobian(program: Program, step: float) -> np.ndarray:
    f = lambda x: in_numpy(program, x)
    return np.stack(
        [(8 * (f(X + e) - f(X - e)) - f(X + 2 * e) + f(X - 2 * e)) / (12 * step) for e in np.eye(3) * step], 1
    )


def _near(found: Any, expected: Any, tolerance: float) -> bool:
    return np.allclose(np.asarray(found), np.asarray(expected), tolerance, tolerance, equal_nan=True)


def explained(program: Program) -> str:
    """The disagreement, also where it is an error."""
    try:
        return disagreement(program)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.full
def test_agrees(seed: int) -> None:
    """What runs eagerly is compiled with all optimizations for one seed in ten; that takes most of the time."""
    with xlamini.enable_x64(True), disable_most_optimizations(seed % 10 != 0):
        program = program_of(seed)
        if not explained(program):
            return
        least = shrunk(program, lambda smaller: bool(explained(smaller)))
        pytest.fail(f"{explained(least)}\n{least!r}", pytrace=False)


def test_a_value_that_unoptimized_code_computes_twice_is_compared_with_optimizations() -> None:
    with xlamini.enable_x64(True):
        assert not explained(("grad of grad", ("largest", ("turn", ("var", 0))), ("var", 0)))


def test_a_wrong_operation_is_seen_and_shrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {**random_programs.TABLE, "flip": (np.flip, lambda x: x)}
    monkeypatch.setattr(random_programs, "TABLE", wrong)
    program = ("tanh", ("plus", ("sin", ("flip", ("cumsum", ("var", 0)))), ("const", 0.5)))
    with xlamini.enable_x64(True):
        assert explained(program) == "eager differs from NumPy"
        least = shrunk(program, lambda smaller: bool(explained(smaller)))
    assert least == ("flip", ("var", 0))
