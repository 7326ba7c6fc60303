"""Kernels of one elementwise function each, on every dtype that it takes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

import xlamini.numpy as jnp
from tests.support.kernel_rows.row import BOTH, Row, bools, floats, ints, like, of_whole_arrays, tolerance_of
from xlamini import lax, nn

SHAPE = (8, 128)
FLOATS = (np.float32, ml_dtypes.bfloat16, np.float16)
INTS = (np.int32, np.uint32, np.int16, np.uint16, np.int8, np.uint8)

Pair = tuple[Callable[..., Any], Callable[..., Any]]
"""A function of the library, and the same of NumPy's float64 or integers."""


def _erf(x: np.ndarray) -> np.ndarray:
    return np.vectorize(math.erf, otypes=[np.float64])(x)


UNARY: dict[str, Pair] = {
    "exp": (jnp.exp, np.exp), "exp2": (jnp.exp2, np.exp2), "expm1": (jnp.expm1, np.expm1),
    "sin": (jnp.sin, np.sin), "cos": (jnp.cos, np.cos), "tan": (jnp.tan, np.tan), "tanh": (jnp.tanh, np.tanh),
    "floor": (jnp.floor, np.floor), "ceil": (jnp.ceil, np.ceil),
    "round": (jnp.round, np.rint), "sign": (jnp.sign, np.sign), "abs": (jnp.abs, np.abs),
    "neg": (lambda x: -x, np.negative), "logistic": (lax.logistic, lambda x: 1 / (1 + np.exp(-x))),
    "erf": (lax.erf, _erf), "square": (jnp.square, np.square), "cube": (lambda x: x**3, lambda x: x**3),
    "round away": (
        lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO), lambda x: np.trunc(x + np.copysign(0.5, x))
    ),
}  # fmt: skip
ON_A_GPU: dict[str, Pair] = {
    "sinh": (jnp.sinh, np.sinh), "cosh": (jnp.cosh, np.cosh), "asin": (jnp.arcsin, np.arcsin),
    "acos": (jnp.arccos, np.arccos), "atan": (jnp.arctan, np.arctan), "asinh": (jnp.arcsinh, np.arcsinh),
    "atanh": (jnp.arctanh, np.arctanh), "acosh": (lambda x: jnp.arccosh(x + 2), lambda x: np.arccosh(x + 2)),
    "erfinv": (lambda x: lax.erf(lax.erf_inv(x)), lambda x: x), "cbrt": (jnp.cbrt, np.cbrt),
}  # fmt: skip
COMPOSED: dict[str, Pair] = {
    "erfc": (lax.erfc, lambda x: 1 - _erf(x)), "softplus": (nn.softplus, lambda x: np.log1p(np.exp(x))),
    "silu": (nn.silu, lambda x: x / (1 + np.exp(-x))),
    "gelu": (lambda x: nn.gelu(x, approximate=False), lambda x: x * (1 + _erf(x / np.sqrt(2))) / 2),
    "relu": (nn.relu, lambda x: np.maximum(x, 0)), "sinc": (jnp.sinc, np.sinc),
    "modf": (lambda x: jnp.modf(x)[0], lambda x: np.modf(x)[0]), "trunc": (jnp.trunc, np.trunc),
    "hypot": (lambda x: jnp.hypot(x, x), lambda x: np.hypot(x, x)),
    "logaddexp": (lambda x: jnp.logaddexp(x, 1 - x), lambda x: np.logaddexp(x, 1 - x)),
    "entropy": (lambda x: -x * jnp.log(jnp.abs(x)), lambda x: -x * np.log(np.abs(x))),
}  # fmt: skip
POSITIVE: dict[str, Pair] = {
    "log": (jnp.log, np.log), "log1p": (jnp.log1p, np.log1p), "log2": (jnp.log2, np.log2),
    "sqrt": (jnp.sqrt, np.sqrt), "rsqrt": (lax.rsqrt, lambda x: 1 / np.sqrt(x)),
    "reciprocal": (lambda x: 1 / x, lambda x: 1 / x), "power": (lambda x: x**2.5, lambda x: x**2.5),
}  # fmt: skip
BINARY: dict[str, Pair] = {
    "add": (jnp.add, np.add), "sub": (jnp.subtract, np.subtract), "mul": (jnp.multiply, np.multiply),
    "div": (lax.div, np.divide), "rem": (lax.rem, np.fmod), "max": (jnp.maximum, np.maximum),
    "min": (jnp.minimum, np.minimum), "atan2": (jnp.arctan2, np.arctan2),
    "power": (lambda x, y: jnp.abs(x) ** y, lambda x, y: np.abs(x) ** y),
    "where": (lambda x, y: jnp.where(x > y, x, 2 * y), lambda x, y: np.where(x > y, x, 2 * y)),
    "clip": (lambda x, y: jnp.clip(x, -1, y), lambda x, y: np.minimum(np.maximum(x, -1), y)),
}  # fmt: skip
COMPARISONS: dict[str, Pair] = {
    "eq": (lambda x, y: x == y, np.equal), "ne": (lambda x, y: x != y, np.not_equal),
    "lt": (lambda x, y: x < y, np.less), "le": (lambda x, y: x <= y, np.less_equal),
    "gt": (lambda x, y: x > y, np.greater), "ge": (lambda x, y: x >= y, np.greater_equal),
}  # fmt: skip
INTEGER: dict[str, Pair] = {
    "add": (jnp.add, np.add), "sub": (jnp.subtract, np.subtract), "mul": (jnp.multiply, np.multiply),
    "max": (jnp.maximum, np.maximum), "min": (jnp.minimum, np.minimum), "and": (jnp.bitwise_and, np.bitwise_and),
    "or": (jnp.bitwise_or, np.bitwise_or), "xor": (jnp.bitwise_xor, np.bitwise_xor),
    "not": (lambda x, y: ~x, lambda x, y: ~x),
    "neg": (lambda x, y: -x, lambda x, y: -x), "abs": (lambda x, y: jnp.abs(x), lambda x, y: np.abs(x)),
    "sign": (lambda x, y: jnp.sign(x), lambda x, y: np.sign(x)),
    "where": (lambda x, y: jnp.where(x > y, x, y + 1), lambda x, y: np.where(x > y, x, y + y.dtype.type(1))),
    "clip": (lambda x, y: jnp.clip(x, 3, 50), lambda x, y: np.clip(x, 3, 50)),
    "cube": (lambda x, y: x**3, lambda x, y: x * x * x),
}  # fmt: skip
DIVISIONS: dict[str, Pair] = {
    "div": (lax.div, lambda x, y: _towards_zero(x, y)), "rem": (lax.rem, lambda x, y: x - _towards_zero(x, y) * y),
    "floor_divide": (lambda x, y: x // y, lambda x, y: x // y), "mod": (lambda x, y: x % y, lambda x, y: x % y),
}  # fmt: skip
SHIFTS: dict[str, Pair] = {
    "shift left": (lax.shift_left, np.left_shift),
    "shift right": (lambda x, n: x >> n, np.right_shift),
    "shift right logical": (
        lax.shift_right_logical, lambda x, n: (x.view(f"u{x.itemsize}") >> n.astype(f"u{x.itemsize}")).view(x.dtype)
    ),
}  # fmt: skip
COUNTS: dict[str, Pair] = {
    "popcount": (lax.population_count, lambda x: _bit_texts(x, lambda bits: bits.count("1"))),
    "leading zeros": (lax.clz, lambda x: _bit_texts(x, lambda bits: len(bits) - len(bits.lstrip("0")))),
}
BOOLS: dict[str, Pair] = {
    "and": (lambda x, y: x & y, np.logical_and), "or": (lambda x, y: x | y, np.logical_or),
    "xor": (lambda x, y: x ^ y, np.logical_xor), "not": (lambda x, y: ~x, lambda x, y: ~x),
    "eq": (lambda x, y: x == y, np.equal), "ne": (lambda x, y: x != y, np.not_equal),
    "lt": (lambda x, y: x < y, np.less), "le": (lambda x, y: x <= y, np.less_equal),
    "gt": (lambda x, y: x > y, np.greater), "ge": (lambda x, y: x >= y, np.greater_equal),
    "max": (jnp.maximum, np.logical_or), "min": (jnp.minimum, np.logical_and),
    "where": (lambda x, y: jnp.where(x, y, ~y), lambda x, y: np.where(x, y, ~y)),
}  # fmt: skip


def _towards_zero(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.trunc(x.astype(np.longdouble) / y).astype(np.int64).astype(x.dtype)


def _bit_texts(x: np.ndarray, count: Callable[[str], int]) -> np.ndarray:
    bits = 8 * x.itemsize
    unsigned = x.view(f"u{x.itemsize}")
    return np.vectorize(lambda n: count(f"{n:0{bits}b}"))(unsigned).astype(x.dtype)


def family(name: str, pairs: dict[str, Pair], operands: list[np.ndarray], result: Any = None, **options: Any) -> Row:
    """A kernel with one result for each function of a family."""
    dtype = operands[0].dtype
    is_float = dtype.kind not in "iub"
    outs = [like(SHAPE, result or dtype)] * len(pairs)

    def expected(*arrays: np.ndarray) -> list[np.ndarray]:
        wide = [a.astype(np.float64) if is_float else a for a in arrays]
        with np.errstate(all="ignore"):
            return [numpy(*wide).astype(result or dtype) for _, numpy in pairs.values()]

    call = of_whole_arrays([library for library, _ in pairs.values()], outs)
    return Row(f"{name} {dtype.name}", call, operands, expected, tolerance_of(dtype), **options)


def with_nans(x: np.ndarray) -> np.ndarray:
    """The array with NaN, infinities and zeros at some places."""
    x = x.copy()
    x.flat[::7] = np.nan
    x.flat[1::11] = np.inf
    x.flat[2::13] = -np.inf
    x.flat[3::17] = -0.0
    x.flat[4::19] = 0.0
    return x


def rows() -> Iterator[Row]:
    """All kernels of this file."""
    for dtype in FLOATS:
        x, y = floats(*SHAPE, dtype=dtype), floats(*SHAPE, dtype=dtype, seed=1)
        yield family("unary", UNARY, [x])
        small = floats(*SHAPE, dtype=dtype, low=-0.9, high=0.9)
        yield family("composed", COMPOSED, [small])
        yield family("on a GPU", ON_A_GPU, [small], targets=("cuda",))
        yield family("positive", POSITIVE, [floats(*SHAPE, dtype=dtype, low=0.1, high=4)])
        yield family("binary", BINARY, [x, y])
        yield family(
            "is finite",
            {"is_finite": (jnp.isfinite, np.isfinite), "isnan": (jnp.isnan, np.isnan)},
            [with_nans(x)],
            bool,
        )
        yield family("compare", COMPARISONS, [with_nans(x), np.where(y > 0, x, with_nans(y)).astype(dtype)], bool)
        extremes = {k: BINARY[k] for k in ("max", "min")} | {
            "sign": (lambda x, y: jnp.sign(x), lambda x, y: np.sign(x))
        }
        yield family("nans", extremes, [with_nans(x), with_nans(y)[::-1].copy()])
    for dtype in INTS:
        x, y = ints(*SHAPE, dtype=dtype), ints(*SHAPE, dtype=dtype, seed=1)
        yield family("integer", INTEGER, [x, y])
        yield family("compare", COMPARISONS, [x, np.where(y > 3, x, y)], bool)
        yield family("shift", SHIFTS, [x, (np.abs(y.astype(np.int64)) % (8 * x.itemsize)).astype(dtype)])
        yield family("count", COUNTS, [x], targets=BOTH if x.itemsize == 4 else ("tpu",))
        divisor = np.where((y == 0) | (y.astype(np.int64) == -1), 3, y).astype(dtype)
        yield family("division", DIVISIONS, [x, divisor])
    yield family("bool", BOOLS, [bools(*SHAPE), bools(*SHAPE, seed=1)])
    yield from conversions()
    yield from bitcasts()


LARGE = [
    (np.float32, np.uint8, 255), (np.float32, np.uint16, 65535), (np.float32, np.uint32, 4e9),
    (np.float32, np.int8, 127), (ml_dtypes.bfloat16, np.uint8, 255), (np.float32, np.int32, 2e9),
]  # fmt: skip
"""Pairs of dtypes, and the largest numbers to convert."""
KINDS = (*FLOATS, np.int32, np.uint32, np.int16, np.int8, np.uint8, np.bool_)


def _numbers(dtype: Any) -> np.ndarray:
    """Numbers that each dtype has."""
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return bools(*SHAPE)
    small = floats(*SHAPE, low=0 if dtype.kind == "u" else -100, high=100)
    return small.astype(dtype)


def conversions() -> Iterator[Row]:
    """Conversions of each dtype to each other."""
    for source in KINDS:
        x = _numbers(source)
        targets = [np.dtype(t) for t in KINDS if np.dtype(t) != source]
        signed_targets = [t for t in targets if np.dtype(source).kind in "ub" or t.kind != "u"]
        functions = [lambda x, t=t: x.astype(t) for t in signed_targets]
        outs = [like(SHAPE, t) for t in signed_targets]
        yield Row(
            f"convert {np.dtype(source).name}", of_whole_arrays(functions, outs), [x],
            lambda x, fs=functions: [f(x.astype(np.float32) if x.dtype == ml_dtypes.bfloat16 else x) for f in fs],
            1e-2,
        )  # fmt: skip
    for dtype, target, ends in LARGE:
        x = floats(*SHAPE, dtype=dtype, low=-ends if np.dtype(target).kind == "i" else 0, high=ends)
        x = np.minimum(x, dtype(254 if dtype is ml_dtypes.bfloat16 else ends)).astype(dtype)
        call = of_whole_arrays([lambda x, t=target: x.astype(t)], [like(SHAPE, target)])
        expected = lambda x, t=target: [x.astype(np.float64).astype(np.int64).astype(t)]
        yield Row(f"convert large {np.dtype(dtype).name} {np.dtype(target).name}", call, [x], expected, 0.0)


def bitcasts() -> Iterator[Row]:
    """The bits of floats as integers, and back."""
    pairs = [
        (np.float32, np.int32),
        (np.int32, np.float32),
        (np.float32, np.uint32),
        (ml_dtypes.bfloat16, np.int16),
        (np.int32, np.uint32),
    ]
    for source, target in pairs:
        x = floats(*SHAPE, dtype=source) if np.dtype(source).kind != "i" else floats(*SHAPE).view(np.int32)
        call = of_whole_arrays([lambda x, t=target: lax.bitcast_convert_type(x, t)], [like(SHAPE, target)])
        yield Row(
            f"bitcast {np.dtype(source).name} {np.dtype(target).name}", call, [x], lambda x, t=target: [x.view(t)], 0.0
        )
