"""Elementwise functions of jnp beside NumPy's: special values, all shapes, mixed dtypes, in eager, jit and vmap.

The functions are those that are ufuncs in NumPy too. All of them are one program for each kind of operands, because it
is compiling that costs.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.support.checks import UNOPTIMIZED

pytestmark = pytest.mark.full

DIGITS = np.finfo(np.float32)
VALUES = np.array(
    [
        np.nan, np.inf, -np.inf, 0.0, -0.0, DIGITS.smallest_subnormal, -DIGITS.tiny / 4, DIGITS.tiny, DIGITS.max,
        -DIGITS.max, 1.0, -1.0, 0.5, -2.5, 7.0, 1e-6, 88.0, -104.0,
    ],
    np.float32,
)  # fmt: skip
WITHOUT_SUBNORMAL = VALUES[np.isnan(VALUES) | (np.abs(VALUES) >= DIGITS.tiny) | (VALUES == 0)]


def ufuncs(count: int) -> dict[str, np.ufunc]:
    """NumPy's functions of so many operands, with one result, that jnp has too."""
    found = {name: getattr(np, name) for name in dir(np) if isinstance(getattr(np, name), np.ufunc)}
    return {k: f for k, f in found.items() if (f.nin, f.nout) == (count, 1) and hasattr(jnp, k) and k not in OTHERWISE}


OTHERWISE = {"matvec", "vecmat", "vecdot", "matmul", "ldexp"}  # not elementwise
UNARY, BINARY = ufuncs(1), ufuncs(2)
LOOSE = {"tan": 4, "sinh": 32, "cosh": 32, "arctanh": 8, "arcsinh": 8, "expm1": 8, "log1p": 4, "tanh": 8, "exp2": 128}
LOOSE |= {"logaddexp2": 128}
"""Units in the last place by which XLA's functions may be off; 4 for the others."""


def numpy_of(name: str, *operands: np.ndarray) -> Any:
    """NumPy's result for operands of one dtype; None if it has none."""
    with np.errstate(all="ignore"):
        try:
            return getattr(np, name)(*operands)
        except TypeError:
            return None


def together(names: Mapping[str, Any], *operands: Any) -> dict[str, Any]:
    """The results of all functions that take operands of these dtypes."""
    return {name: getattr(jnp, name)(*operands) for name in names}


def accepting(names: Mapping[str, Any], *operands: np.ndarray) -> list[str]:
    """The functions that take operands of these dtypes, here and in NumPy."""
    return [name for name in names if _accepts(name, *operands) and numpy_of(name, *operands) is not None]


def _accepts(name: str, *operands: Any) -> bool:
    try:
        xlamini.eval_shape(getattr(jnp, name), *operands)
    except (TypeError, ValueError):
        return False
    return True


def ways(names: list[str]) -> dict[str, Callable[..., dict[str, Any]]]:
    """Eager, compiled, and mapped over the elements."""
    fun = functools.partial(together, dict.fromkeys(names))
    compiled = functools.partial(xlamini.jit, compiler_options=UNOPTIMIZED)
    return {"eager": fun, "jit": compiled(fun), "vmap": compiled(xlamini.vmap(fun))}


def differences(found: Any, name: str, *operands: np.ndarray) -> np.ndarray:
    """A mask of the elements that differ from NumPy's by more than rounding, or in the sign of a zero."""
    found = np.asarray(found)
    expected = np.asarray(numpy_of(name, *operands))
    if expected.dtype.kind not in "fc":
        return found != expected
    with np.errstate(all="ignore"):
        expected = expected.astype(found.dtype)
        near = np.abs(found - expected) <= LOOSE.get(name, 4) * np.spacing(np.abs(expected))
    tiny = np.abs(expected) <= 2 * DIGITS.tiny  # subnormal results are flushed
    equal = (found == expected) | (np.isnan(found) & np.isnan(expected)) | near
    equal |= tiny & (np.abs(found) <= 2 * DIGITS.tiny)
    zeros = (found == 0) & (expected == 0) & (np.signbit(found) != np.signbit(expected))
    return ~equal | zeros


SIGNS_OF_ZEROS = {"maximum", "minimum", "fmax", "fmin", "sign", "floor_divide", "mod", "remainder"}
"""Of an equal 0.0 and -0.0 NumPy takes either; the others have the zeros that JAX has."""


def wrong(names: Mapping[str, Any], *operands: np.ndarray) -> list[str]:
    """The functions whose results differ from NumPy's, with the first operands at which they do."""
    taken, found = accepting(names, *operands), []
    for way, fun in ways(taken).items():
        results = fun(*operands)
        for name in taken:
            bad = differences(results[name], name, *operands)
            if name in SIGNS_OF_ZEROS:
                bad &= np.asarray(results[name]) != numpy_of(name, *operands)
            if bad.any():
                first = np.argmax(bad)
                at = ", ".join(str(x[first]) for x in operands)
                found.append(f"{name}({at}) is {np.asarray(results[name])[first]} under {way}")
    return found


def test_special_values_of_one_operand() -> None:
    assert len(UNARY) > 30
    assert wrong(UNARY, WITHOUT_SUBNORMAL) == []


def test_special_values_of_two_operands() -> None:
    assert len(BINARY) > 25
    x, y = (grid.ravel() for grid in np.meshgrid(WITHOUT_SUBNORMAL, WITHOUT_SUBNORMAL))
    assert wrong(BINARY, x, y) == []


@pytest.mark.parametrize("names", [UNARY, BINARY], ids=["unary", "binary"])
def test_subnormal_operands_are_themselves_or_zero(names: Mapping[str, Any]) -> None:
    tiny = VALUES[(np.abs(VALUES) < DIGITS.tiny) & (VALUES != 0)]
    operands = [tiny] if names is UNARY else [g.ravel() for g in np.meshgrid(tiny, WITHOUT_SUBNORMAL)]
    flushed = [np.where(np.abs(x) < DIGITS.tiny, np.copysign(0, x), x).astype(np.float32) for x in operands]
    taken = accepting(names, *operands)
    results = xlamini.jit(functools.partial(together, dict.fromkeys(taken)), compiler_options=UNOPTIMIZED)(*operands)
    for name in set(taken) - {"spacing", "nextafter", "frexp", "signbit", "copysign", "pow", "power", "float_power"}:
        found, allowed = np.asarray(results[name]), [numpy_of(name, *given) for given in (operands, flushed)]
        near = [_alike(found, np.asarray(a), name) for a in allowed]
        assert np.logical_or(*near).all(), f"{name}{[x[~np.logical_or(*near)][0] for x in operands]}"


def _alike(found: np.ndarray, expected: np.ndarray, name: str) -> np.ndarray:
    if expected.dtype.kind not in "fc":
        return found == expected
    with np.errstate(all="ignore"):
        near = np.abs(found - expected) <= LOOSE.get(name, 4) * np.spacing(np.abs(expected)) + 2 * DIGITS.tiny
    return (found == expected) | (np.isnan(found) & np.isnan(expected)) | near


SHAPES = [(), (0,), (1,), (2, 0, 3), (1,) * 9, (2, 1, 1, 2, 1, 1, 1, 1, 2)]


@pytest.mark.parametrize("dtype", ["float32", "int32", "bool"])
def test_shapes(dtype: str) -> None:
    rng = np.random.default_rng(0)
    arrays = [np.asarray(rng.integers(1, 3, shape)).astype(dtype) for shape in SHAPES]
    taken = accepting(UNARY, arrays[0]), accepting(BINARY, arrays[0], arrays[0])

    def run(*arrays: Any) -> Any:
        return [[together(dict.fromkeys(t), *[x] * (i + 1)) for i, t in enumerate(taken)] for x in arrays]

    found = xlamini.jit(run, compiler_options=UNOPTIMIZED)(*arrays)
    for x, results in zip(arrays, found, strict=True):
        for count, of_count in enumerate(results, 1):
            for name, result in of_count.items():
                expected = numpy_of(name, *[x.astype(_computed_in(result, x.dtype))] * count)
                assert result.shape == np.shape(expected) == x.shape, name
                found_here, wanted = (np.asarray(v, complex) for v in (result, expected))
                np.testing.assert_allclose(found_here, wanted, 1e-5, err_msg=name)


MIXED = ["bool", "int8", "uint8", "int32", "float16", "float32", "complex64"]


@pytest.mark.sample(3)
@pytest.mark.parametrize("left", MIXED)
def test_mixed_dtypes(left: str) -> None:
    """The result is that of operands in the common dtype, which is JAX's; the right one is a row, the left a column."""
    x = np.array([[1], [3], [2]]).astype(left)
    others = [np.array([2, 1, 3]).astype(right) for right in MIXED if right != left]
    taken = [[n for n in accepting(BINARY, x, y) if n not in SHIFTS] for y in others]

    def run(x: Any, *others: Any) -> Any:
        return [together(dict.fromkeys(t), x, y) for t, y in zip(taken, others, strict=True)]

    for y, results in zip(others, xlamini.jit(run, compiler_options=UNOPTIMIZED)(x, *others), strict=True):
        common = jnp.promote_types(x.dtype, y.dtype)
        for name, result in results.items():
            dtype = _computed_in(result, common)
            expected = np.broadcast_to(numpy_of(name, x.astype(dtype), y.astype(dtype)), (3, 3))
            tolerance = 1e-2 if np.float16 in (common, result.dtype) else 1e-5
            np.testing.assert_allclose(
                np.asarray(result, complex), expected.astype(complex), tolerance, err_msg=f"{name}: {left}, {y.dtype}"
            )


def _computed_in(result: Any, dtype: Any) -> Any:
    """The dtype for NumPy, which computes floats of narrow integers in float16."""
    return result.dtype if result.dtype.kind == "f" and np.dtype(dtype).kind in "iub" else dtype


SHIFTS = {"left_shift", "right_shift", "bitwise_left_shift", "bitwise_right_shift", "pow", "power", "float_power"}
"""They overflow in a narrow dtype, or treat their second operand in its own."""
