"""The operations of the dialect `math`: computed in float64, then rounded to the type."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.kernel_text.arith import bits_of, signed, unsigned, wrapped
from tests.support.kernel_text.machine import Machine, Op, Rule


def each(compute: Callable[[float], float]) -> Callable[[Any], np.ndarray]:
    """A function of floats, for each element."""
    return lambda x: np.vectorize(compute, otypes=[np.float64])(x)


def _half_away(x: np.ndarray) -> np.ndarray:
    return np.trunc(x + np.copysign(0.5, x))


FLOATS: dict[str, Callable[..., Any]] = {
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log2": np.log2, "log10": np.log10,
    "log1p": np.log1p, "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos,
    "atan": np.arctan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "asinh": np.arcsinh, "acosh": np.arccosh,
    "atanh": np.arctanh, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "cbrt": np.cbrt, "floor": np.floor,
    "ceil": np.ceil, "trunc": np.trunc, "round": _half_away, "roundeven": np.rint, "absf": np.abs,
    "erf": each(math.erf), "erfc": each(math.erfc), "powf": np.power, "atan2": np.arctan2,
    "copysign": np.copysign, "fma": lambda x, y, z: x * y + z, "clampf": lambda x, low, high: np.clip(x, low, high),
}  # fmt: skip


def of_floats(compute: Callable[..., Any]) -> Rule:
    """A rule of a function of float64."""

    def rule(machine: Machine, op: Op, *xs: Any) -> np.ndarray:
        return np.asarray(compute(*(np.asarray(x).astype(np.float64) for x in xs))).astype(op.kinds[0].dtype)

    return rule


def _integer_power(machine: Machine, op: Op, x: Any, power: Any) -> np.ndarray:
    """The power of integers; one below 0 is that of 1 divided by the number, rounded towards zero."""
    base, power, result = signed(x), signed(power), np.ones(np.broadcast_shapes(np.shape(x), np.shape(power)), np.int64)
    square, left = base, np.maximum(power, 0)
    while np.any(left):
        result = np.where(left & 1, result * square, result)
        square, left = square * square, left >> 1
    below = np.where(base == 1, 1, np.where(base == -1, 1 - 2 * (power & 1), 0))
    return wrapped(np.where(power < 0, below, result), op.kinds[0].dtype)


def _count(count: Callable[[str], int]) -> Rule:
    def rule(machine: Machine, op: Op, x: Any) -> np.ndarray:
        bits = bits_of(op.kinds[0].dtype)
        counted = np.vectorize(lambda n: count(f"{n:0{bits}b}"), otypes=[np.int64])(unsigned(x).astype(object))
        return wrapped(counted, op.kinds[0].dtype)

    return rule


def _is(test: Callable[[Any], Any]) -> Rule:
    return lambda machine, op, x: test(np.asarray(x).astype(np.float64))


MATH: dict[str, Rule] = {
    **{f"math.{name}": of_floats(compute) for name, compute in FLOATS.items()},
    "math.fpowi": lambda machine, op, x, n: np.power(np.float64(x), signed(n)).astype(op.kinds[0].dtype),
    "math.ipowi": _integer_power,
    "math.absi": lambda machine, op, x: wrapped(np.abs(signed(x)), op.kinds[0].dtype),
    "math.ctpop": _count(lambda bits: bits.count("1")),
    "math.ctlz": _count(lambda bits: len(bits) - len(bits.lstrip("0"))),
    "math.cttz": _count(lambda bits: len(bits) - len(bits.rstrip("0"))),
    "math.isfinite": _is(np.isfinite), "math.isinf": _is(np.isinf), "math.isnan": _is(np.isnan),
}  # fmt: skip
