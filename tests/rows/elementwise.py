"""Rows of the elementwise operations, family by family in the order of xlamini/primitives."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.special
from numpy.exceptions import ComplexWarning

from tests.rows.row import BOOLS, COMPLEXES, FLOATS, INTS, SIGNEDS, Arg, Row, pairs, singles, to_dtype
from xlamini import lax
from xlamini.experimental.sparse import todense
from xlamini.primitives.base.elementwise import add_any
from xlamini.primitives.elementwise.comparison import eq_to, le_to, lt_to
from xlamini.primitives.elementwise.hyperbolic import sech_squared
from xlamini.primitives.elementwise.logaddexp import logaddexp
from xlamini.primitives.elementwise.special.erfc_inv import erfc_inv
from xlamini.primitives.elementwise.special.error_function import gaussian
from xlamini.primitives.placement.identity import copy

INEXACT = FLOATS + COMPLEXES
REALS = FLOATS + INTS
NUMBERS = REALS + COMPLEXES
ALL = NUMBERS + BOOLS
WIDE = ("float32", "float64")


def nonzero(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    """Numbers from 1 to 5, of both signs where the dtype has them."""
    signs = 1 if dtype.kind in "bu" else rng.choice([-1, 1], (2, 3))
    return rng.integers(1, 6, (2, 3)) * signs


def spaced(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    """Numbers without ties, none of them whole or near a whole number."""
    return rng.permutation(6).reshape(2, 3) - 2.6


def quotient(x: Any, y: Any) -> Any:
    """Integer division towards zero."""
    signed = np.sign(x) * np.sign(y) * (np.abs(x) // np.abs(y))
    return signed.astype(x.dtype)


def rounded_away(x: Any) -> Any:
    return np.trunc(x + np.copysign(0.5, x))


def shifted(operation: Any, signed: bool) -> Any:
    """A shift on the bits read as signed or unsigned integers."""

    def reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        kind = np.dtype(f"{'i' if signed else 'u'}{x.dtype.itemsize}")
        return operation(x.view(kind) if x.ndim else x.astype(kind), y.astype(kind)).astype(x.dtype)

    return reference


def upper_half(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The upper half of the bits of a product."""
    bits = 8 * x.dtype.itemsize
    return np.asarray((x.astype(object) * y.astype(object)) // 2**bits).astype(x.dtype)


def leading_zeros(x: np.ndarray) -> np.ndarray:
    bits = 8 * x.dtype.itemsize
    unsigned = x.astype(f"u{x.dtype.itemsize}")
    count = np.vectorize(lambda v: bits - int(v).bit_length(), otypes=[np.int64])
    return count(unsigned).astype(x.dtype)


def bits_set(x: np.ndarray) -> np.ndarray:
    unsigned = x.astype(f"u{x.dtype.itemsize}")
    return np.vectorize(lambda v: int(v).bit_count(), otypes=[np.int64])(unsigned).astype(x.dtype)


def unary(name: str, reference: Any, domain: tuple[float, float] = (-4, 4), **options: Any) -> Row:
    return Row(name, getattr(lax, name), reference, samples=singles(domain=domain), **options)


def binary(name: str, reference: Any, domain: tuple[float, float] = (-4, 4), **options: Any) -> Row:
    return Row(name, getattr(lax, name), reference, samples=pairs(domain=domain), **options)


def comparison(name: str, reference: Any, dtypes: Any = REALS + BOOLS) -> Row:
    options = {"differentiable": False, "exact": True, "specials": True}
    return Row(name, getattr(lax, name), reference, samples=pairs(domain=(0, 3)), dtypes=dtypes, **options)


def constant(name: str, reference: Any, **options: Any) -> Row:
    """An operation whose derivative is zero: differences are taken away from its steps."""
    samples = [[Arg((2, 3), values=spaced)]]
    return Row(name, getattr(lax, name), reference, samples=samples, specials=True, exact=True, **options)


def bits(name: str, reference: Any, dtypes: Any = INTS + BOOLS, **options: Any) -> Row:
    options.setdefault("samples", pairs(domain=(-99, 99)))
    return Row(name, getattr(lax, name), reference, dtypes=dtypes, exact=True, **options)


DIVISIONS = [[Arg(domain=(-99, 99)), Arg(values=nonzero)]]
LOOSE = {"float32": 2e-5, "complex64": 2e-5, "float64": 1e-11, "complex128": 1e-11}
SPECIAL = {"float32": 5e-5, "float64": 1e-10, "bfloat16": 4e-2, "float16": 5e-3}

ARITHMETIC = [
    binary("add", np.add, dtypes=NUMBERS, linear=True, specials=True),
    Row("add_any", add_any, np.add, samples=pairs(), dtypes=NUMBERS, linear=True),
    binary("sub", np.subtract, dtypes=NUMBERS, linear=True, specials=True),
    binary("mul", np.multiply, dtypes=NUMBERS, specials=True),
    binary("div", np.divide, (0.5, 4), dtypes=INEXACT),
    Row("div: integers", lax.div, quotient, samples=DIVISIONS, dtypes=INTS, exact=True),
    binary("rem", np.fmod, (0.5, 4), dtypes=FLOATS, specials=True),
    Row("rem: integers", lax.rem, np.fmod, samples=DIVISIONS, dtypes=INTS, exact=True),
    unary("neg", np.negative, dtypes=NUMBERS, linear=True, specials=True, exact=True),
    unary("abs", np.abs, dtypes=SIGNEDS + INEXACT, specials=True),
    constant("sign", np.sign, dtypes=REALS),
    Row("sign: complex", lax.sign, np.sign, dtypes=COMPLEXES, differentiable=False),
    Row("mul: axes of size 1", lax.mul, np.multiply, samples=[[Arg((2, 1)), Arg((2, 3))], [Arg((2, 3)), Arg((1, 3))]]),
    Row("sub: axes of size 1", lax.sub, np.subtract, samples=[[Arg((2, 1)), Arg((1, 3))]], linear=True),
    Row(
        "mul: out_dtype",
        lambda x, y: lax.mul(x, y, out_dtype="float64"),
        lambda x, y: x.astype("float64") * y.astype("float64"),
        samples=pairs(),
        dtypes=("float32", "int8", "float64"),
        x64=True,
    ),
    Row("mulhi", lax.mulhi, upper_half, samples=pairs(domain=(-120, 120)), dtypes=INTS, exact=True),
    binary("max", np.maximum, dtypes=ALL, specials=True, exact=True),
    binary("min", np.minimum, dtypes=ALL, specials=True, exact=True),
]

POWERS = [
    binary("pow", np.power, (0.3, 3), dtypes=INEXACT, tolerance=LOOSE),
    Row(
        "pow: integer exponents",
        lax.pow,
        lambda x, y: np.power(x, y.astype(x.dtype)),
        samples=[[Arg(domain=(-3, 3)), Arg(shape, domain=(0, 4), dtype="int32")] for shape in ((2, 3), ())],
        dtypes=FLOATS,
        tolerance=LOOSE,
    ),
    *(
        Row(f"integer_pow: {y}", lambda x, y=y: lax.integer_pow(x, y), lambda x, y=y: x**y, dtypes=NUMBERS, order=3)
        for y in (0, 1, 2, 3, 7)
    ),
    Row("integer_pow: -3", lambda x: lax.integer_pow(x, -3), lambda x: 1 / x**3, singles(domain=(0.5, 2)), INEXACT),
    unary("reciprocal", np.reciprocal, (0.5, 2), dtypes=INEXACT),
    unary("sqrt", np.sqrt, (0.2, 4), dtypes=INEXACT, specials=True),
    unary("rsqrt", lambda x: 1 / np.sqrt(x), (0.2, 4), dtypes=INEXACT),
    unary("cbrt", np.cbrt, (0.2, 4), specials=True),
    unary("square", np.square, dtypes=NUMBERS, specials=True),
    unary("one_minus_square", lambda x: (1 - x) * (1 + x), dtypes=NUMBERS, specials=True),
]

EXPONENTIALS = [
    unary("exp", np.exp, dtypes=INEXACT, specials=True, tolerance=LOOSE),
    unary("exp2", lambda x: np.exp2(x), dtypes=FLOATS, specials=True, tolerance=LOOSE),
    unary("expm1", np.expm1, dtypes=INEXACT, specials=True, tolerance=LOOSE),
    unary("log", np.log, (0.2, 4), dtypes=INEXACT, specials=True),
    unary("log2", np.log2, (0.2, 4), dtypes=INEXACT, specials=True),
    unary("log1p", np.log1p, (-0.7, 4), dtypes=INEXACT, specials=True),
    unary("logistic", lambda x: 1 / (1 + np.exp(-x)), dtypes=INEXACT, specials=True, tolerance=LOOSE),
]

TRIGONOMETRIC = [
    unary("sin", np.sin, dtypes=INEXACT, specials=True, tolerance=LOOSE),
    unary("cos", np.cos, dtypes=INEXACT, specials=True, tolerance=LOOSE),
    unary("tan", np.tan, (-1.2, 1.2), dtypes=INEXACT, specials=True),
    unary("asin", np.arcsin, (-0.9, 0.9), dtypes=INEXACT, specials=True),
    unary("acos", np.arccos, (-0.9, 0.9), dtypes=INEXACT, specials=True),
    unary("atan", np.arctan, (-0.9, 0.9), dtypes=INEXACT, specials=True),
    binary("atan2", np.arctan2, dtypes=FLOATS, specials=True),
]

HYPERBOLIC = [
    unary("sinh", np.sinh, dtypes=INEXACT, specials=True, tolerance=LOOSE),
    unary("cosh", np.cosh, dtypes=INEXACT, specials=True, tolerance=LOOSE),
    unary("tanh", np.tanh, (-1.2, 1.2), dtypes=INEXACT, specials=True),
    Row(
        "sech_squared", sech_squared, lambda x: 1 / np.square(np.cosh(x)), samples=singles(domain=(-2, 2)),
        dtypes=FLOATS, specials=True,
    ),
    unary("asinh", np.arcsinh, (-0.9, 0.9), dtypes=INEXACT, specials=True),
    unary("acosh", np.arccosh, (1.3, 4), dtypes=INEXACT, specials=True),
    unary("atanh", np.arctanh, (-0.8, 0.8), dtypes=INEXACT, specials=True),
]

SPECIALS = [
    unary("erf", scipy.special.erf, (-2, 2), specials=True, tolerance=SPECIAL),
    unary("erfc", scipy.special.erfc, (-2, 2), specials=True, tolerance=SPECIAL),
    Row(
        "gaussian", gaussian, lambda x: np.exp(-np.square(x)), samples=singles(domain=(-2, 2)), dtypes=FLOATS,
        specials=True, tolerance=SPECIAL,
    ),
    unary("erf_inv", scipy.special.erfinv, (-0.9, 0.9), specials=True, tolerance=SPECIAL),
    Row(
        "erfc_inv", erfc_inv, scipy.special.erfcinv, samples=singles(domain=(0.05, 1.95)), dtypes=FLOATS, specials=True,
        tolerance=SPECIAL,
    ),
    Row("logaddexp", logaddexp, np.logaddexp, samples=pairs(), specials=True),
    unary("lgamma", scipy.special.gammaln, (0.3, 4), tolerance=SPECIAL),
    unary("digamma", scipy.special.digamma, (0.5, 4), tolerance=SPECIAL),
    Row(
        "polygamma",
        lax.polygamma,
        lambda m, x: scipy.special.polygamma(m.astype(int), x).astype(x.dtype),
        samples=[[Arg(domain=(1, 1), diff=False), Arg(domain=(0.6, 3))]],
        dtypes=WIDE,
        tolerance=SPECIAL,
    ),
    Row(
        "zeta",
        lax.zeta,
        scipy.special.zeta,
        samples=[[Arg(domain=(1.5, 3)), Arg(domain=(0.6, 3))]],
        dtypes=WIDE,
        tolerance=SPECIAL,
    ),
]

ROUNDING = [
    constant("floor", np.floor),
    constant("ceil", np.ceil),
    constant("round", rounded_away),
    Row(
        "round: half to even",
        lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
        np.rint,
        samples=[[Arg(values=lambda rng, dtype: np.arange(-3, 3) + 0.5)]],
        differentiable=False,
        specials=True,
        exact=True,
    ),
    unary("is_finite", np.isfinite, differentiable=False, specials=True, exact=True),
    binary("nextafter", np.nextafter, dtypes=WIDE, differentiable=False, exact=True),
]

COMPARISONS = [
    comparison("eq", np.equal, ALL),
    comparison("ne", np.not_equal, ALL),
    comparison("lt", np.less),
    comparison("le", np.less_equal),
    comparison("gt", np.greater),
    comparison("ge", np.greater_equal),
    Row("eq_to", eq_to, np.equal, samples=pairs(domain=(1, 3)), dtypes=REALS + BOOLS, differentiable=False, exact=True),
    Row("lt_to", lt_to, np.less, samples=pairs(domain=(1, 3)), dtypes=REALS + BOOLS, differentiable=False, exact=True),
    Row("le_to", le_to, np.less_equal, samples=pairs(domain=(1, 3)), dtypes=REALS + BOOLS, differentiable=False),
]

SHIFTS = {"samples": [[Arg(domain=(-99, 99)), Arg(shape, domain=(0, 7))] for shape in ((2, 3), ())], "dtypes": INTS}

BITWISE = [
    bits("bitwise_and", np.bitwise_and),
    bits("bitwise_or", np.bitwise_or),
    bits("bitwise_xor", np.bitwise_xor),
    bits("bitwise_not", np.invert, samples=singles(domain=(-99, 99))),
    bits("shift_left", np.left_shift, **SHIFTS),
    bits("shift_right_logical", shifted(np.right_shift, signed=False), **SHIFTS),
    bits("shift_right_arithmetic", shifted(np.right_shift, signed=True), **SHIFTS),
    bits("population_count", bits_set, INTS, samples=singles(domain=(-99, 99))),
    bits("clz", leading_zeros, INTS, samples=singles(domain=(-99, 99))),
]

COMPLEX = [
    unary("real", np.real, dtypes=COMPLEXES, linear=True, exact=True),
    unary("imag", np.imag, dtypes=COMPLEXES, linear=True, exact=True),
    unary("conj", np.conj, dtypes=COMPLEXES, linear=True, exact=True),
    Row("conj: real", lax.conj, lambda x: x + 0j, dtypes=WIDE, linear=True, exact=True),
    binary("complex", lambda x, y: x + 1j * y, dtypes=WIDE, linear=True, exact=True),
]


def convert_row(target: str, dtypes: Any) -> Row:
    def reference(x: np.ndarray) -> np.ndarray:
        return (x.real if x.dtype.kind == "c" and not target.startswith("c") else x).astype(to_dtype(target))

    def converted(x: Any) -> Any:
        with warnings.catch_warnings(action="ignore", category=ComplexWarning):  # the reference takes the real part too
            return lax.convert_element_type(x, target)

    return Row(
        f"convert_element_type: {target}",
        converted,
        reference,
        samples=singles(domain=(0, 9)),
        dtypes=dtypes,
        differentiable=target in ("float64", "complex128"),
        linear=target in ("float64", "complex128"),
        order=1,
        exact=True,
        x64=target in ("float64", "complex128"),
    )


CONVERSIONS = [
    *(convert_row(target, ALL) for target in ("float32", "float64", "complex128", "int32", "uint8")),
    convert_row("float16", REALS),
    Row(
        "convert_element_type: bool",
        lambda x: lax.convert_element_type(x, bool),
        lambda x: x != 0,
        dtypes=ALL,
        exact=True,
    ),
    Row(
        "bitcast_convert_type",
        lambda x: lax.bitcast_convert_type(x, np.int32),
        lambda x: x.view(np.int32),
        dtypes=("float32",),
    ),
    Row(
        "bitcast_convert_type: narrower",
        lambda x: lax.bitcast_convert_type(x, np.uint8),
        lambda x: np.ascontiguousarray(x).reshape(*x.shape, 1).view(np.uint8),
        dtypes=WIDE,
        differentiable=False,
        exact=True,
    ),
    Row(
        "bitcast_convert_type: wider",
        lambda x: lax.bitcast_convert_type(x, np.uint32),
        lambda x: x.view(np.uint32)[..., 0],
        samples=[[Arg((3, 4), domain=(0, 99))], [Arg((4,), domain=(0, 99))]],
        dtypes=("int8", "uint8"),
        exact=True,
    ),
    Row(
        "reduce_precision",
        lambda x: lax.reduce_precision(x, 5, 10),
        lambda x: x.astype(np.float16).astype(x.dtype),
        dtypes=WIDE,
        differentiable=False,
        exact=True,
    ),
    Row("stage", lax.stage, lambda x: x, dtypes=ALL, linear=True, exact=True),
    Row("dtype", lambda x: lax.full_like(x, 1, lax.dtype(x)), np.ones_like, dtypes=ALL, differentiable=False),
    Row("copy", copy, lambda x: x, dtypes=ALL, linear=True, exact=True),
    Row("experimental.sparse.todense", todense, lambda x: x, dtypes=ALL, linear=True, exact=True),
    Row("stop_gradient", lax.stop_gradient, lambda x: x, dtypes=ALL, differentiable=False, exact=True),
]

CHOICES = [
    Row(
        "select",
        lax.select,
        np.where,
        samples=[[Arg(shape, dtype="bool"), Arg(), Arg()] for shape in ((2, 3), ())],
        dtypes=ALL,
        exact=True,
    ),
    Row(
        "clamp",
        lax.clamp,
        lambda low, x, high: np.minimum(np.maximum(x, low), high),
        samples=[
            [Arg((2, 3), (0, 1)), Arg((2, 3)), Arg((2, 3), (2, 3))],
            [Arg((), (0, 1)), Arg((2, 3)), Arg((), (2, 3))],
            [Arg((), (0, 1)), Arg(()), Arg((), (2, 3))],
            [Arg((2, 3), (0, 1)), Arg((2, 3)), Arg((), (2, 3))],
        ],
        dtypes=REALS + BOOLS,
        exact=True,
    ),
    Row(
        "select_n",
        lax.select_n,
        lambda which, x, y: np.where(which, y, x),
        samples=[[Arg(shape, dtype="bool"), Arg(), Arg()] for shape in ((2, 3), ())],
        dtypes=ALL,
        exact=True,
    ),
    Row(
        "select_n: of three",
        lax.select_n,
        lambda which, *cases: np.choose(which, cases),
        samples=[[Arg(shape, domain=(0, 2), dtype="int32"), Arg(), Arg(), Arg()] for shape in ((2, 3), ())],
        dtypes=ALL,
        exact=True,
    ),
]

ROWS = [
    *ARITHMETIC,
    *POWERS,
    *EXPONENTIALS,
    *TRIGONOMETRIC,
    *HYPERBOLIC,
    *SPECIALS,
    *ROUNDING,
    *COMPARISONS,
    *BITWISE,
    *COMPLEX,
    *CONVERSIONS,
    *CHOICES,
]
