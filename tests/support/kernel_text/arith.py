"""The operations of the dialect `arith`. Integers have no sign in their types: the operations do."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.support.kernel_text.kinds import filled, is_float
from tests.support.kernel_text.machine import Machine, Op, Rule

GARBAGE = 0x4D4D4D4D
"""The result of an operation on integers that no machine defines, such as a division by 0."""


def bits_of(dtype: Any) -> int:
    """The number of bits of an integer dtype."""
    dtype = np.dtype(dtype)
    return 1 if dtype.kind == "b" else int(dtype.name.removeprefix("u").removeprefix("int"))


def signed(x: Any) -> np.ndarray:
    """An integer as int64, by its sign: a true bit is -1."""
    x = np.asarray(x)
    return -x.astype(np.int64) if x.dtype.kind == "b" else x.astype(np.int64)


def unsigned(x: Any) -> np.ndarray:
    """An integer as uint64, by its bits."""
    x, bits = np.asarray(x), bits_of(np.asarray(x).dtype)
    return x.astype(np.int64).view(np.uint64) & np.uint64(2**bits - 1)


def wrapped(x: Any, dtype: Any) -> np.ndarray:
    """The lowest bits of an integer."""
    x, dtype = np.asarray(x), np.dtype(dtype)
    if dtype.kind == "b":
        return (x & x.dtype.type(1)).astype(bool)
    return x.astype(np.int64).astype(dtype)


def _ints(compute: Callable[..., Any], read: Callable[[Any], np.ndarray] = signed) -> Rule:
    return lambda machine, op, *xs: wrapped(compute(*map(read, xs)), op.kinds[0].dtype)


def _floats(compute: Callable[..., Any]) -> Rule:
    return lambda machine, op, *xs: np.asarray(compute(*map(np.asarray, xs))).astype(op.kinds[0].dtype)


def _quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Division that rounds towards zero."""
    safe = np.where(y == 0, 1, y).astype(y.dtype)
    down = x // safe
    if y.dtype.kind == "i":
        down = down + (((x - down * safe) != 0) & ((x < 0) != (y < 0)))
    return np.where(y == 0, GARBAGE, down).astype(y.dtype)


def _remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return x - _quotient(x, y) * y


def _shift(compute: Callable[..., Any], read: Callable[[Any], np.ndarray]) -> Rule:
    """A shift; one by as many bits as there are, or more, is not defined."""

    def rule(machine: Machine, op: Op, x: Any, by: Any) -> np.ndarray:
        dtype, by = op.kinds[0].dtype, unsigned(by)
        bits, x = np.uint64(bits_of(dtype)), read(x)
        shifted = compute(x, np.where(by < bits, by, 0).astype(x.dtype))
        return wrapped(np.where(by < bits, shifted.astype(np.int64), GARBAGE), dtype)

    return rule


_INTEGER_TESTS = [
    (np.equal, signed), (np.not_equal, signed), (np.less, signed), (np.less_equal, signed), (np.greater, signed),
    (np.greater_equal, signed), (np.less, unsigned), (np.less_equal, unsigned), (np.greater, unsigned),
    (np.greater_equal, unsigned),
]  # fmt: skip
_FLOAT_TESTS = [
    lambda x, y: x != x, np.equal, np.greater, np.greater_equal, np.less, np.less_equal, np.not_equal,
    lambda x, y: x == x,
]  # fmt: skip


def _cmpi(machine: Machine, op: Op, x: Any, y: Any) -> np.ndarray:
    test, read = _INTEGER_TESTS[op.attributes["predicate"]]
    return test(read(x), read(y))


def _cmpf(machine: Machine, op: Op, x: Any, y: Any) -> np.ndarray:
    """Predicates 0 to 7 are false with a NaN, those from 8 on true."""
    number, x, y = op.attributes["predicate"], np.float64(x), np.float64(y)
    has_nan = np.isnan(x) | np.isnan(y)
    if number < 8:
        always = np.zeros(np.broadcast_shapes(x.shape, y.shape), bool) if number == 0 else ~has_nan
        return always if number in (0, 7) else _FLOAT_TESTS[number](x, y) & ~has_nan
    if number in (14, 15):
        return has_nan if number == 14 else np.ones_like(has_nan)
    return _FLOAT_TESTS[number - 7](x, y) | has_nan


def _select(machine: Machine, op: Op, chosen: Any, x: Any, y: Any) -> np.ndarray:
    return np.where(chosen, x, y).astype(op.kinds[0].dtype)


def _to_integer(is_signed: bool) -> Rule:
    """A float towards zero; one beyond the ends becomes the end, a NaN becomes 0."""

    def rule(machine: Machine, op: Op, x: Any) -> np.ndarray:
        dtype = op.kinds[0].dtype
        bits = bits_of(dtype)
        low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if is_signed else (0, 2**bits - 1)
        x = np.trunc(np.nan_to_num(np.float64(x), posinf=np.inf, neginf=-np.inf))
        inside = np.where((x > low) & (x < high), x, 0)
        whole = inside.astype(np.int64 if is_signed else np.uint64).astype(np.uint64).view(np.int64)
        ends = np.where(x >= high, np.uint64(high % 2**64).view(np.int64), np.int64(low))
        return wrapped(np.where((x > low) & (x < high), whole, ends), dtype)

    return rule


def _bitcast(machine: Machine, op: Op, x: Any) -> np.ndarray:
    x, dtype = np.asarray(x), op.kinds[0].dtype
    return x if x.dtype == dtype else np.ascontiguousarray(x).reshape(x.shape).view(dtype)


def _constant(machine: Machine, op: Op) -> np.ndarray:
    return filled(op.kinds[0], op.attributes["value"])


def _extended(compute: Callable[[Any, Any], Any], read: Callable[[Any], np.ndarray]) -> Rule:
    """The low and the high half of a result of twice the bits."""

    def rule(machine: Machine, op: Op, x: Any, y: Any) -> list[np.ndarray]:
        dtype = op.kinds[0].dtype
        exact = np.asarray(compute(read(x).astype(object), read(y).astype(object)), object)
        halves = [exact & (2**64 - 1), (exact >> bits_of(dtype)) & (2**64 - 1)]
        return [wrapped(np.array(h, np.uint64).view(np.int64), k.dtype) for h, k in zip(halves, op.kinds, strict=True)]

    return rule


def high_product(machine: Machine, op: Op, x: Any, y: Any) -> np.ndarray:
    """The high half of the product of unsigned integers."""
    exact = np.asarray(unsigned(x).astype(object) * unsigned(y).astype(object), object)
    return wrapped(np.array(exact >> bits_of(op.kinds[0].dtype), np.uint64).view(np.int64), op.kinds[0].dtype)


extend_float = _floats(lambda x: x)

ARITH: dict[str, Rule] = {
    "arith.constant": _constant,
    "arith.addi": _ints(np.add), "arith.subi": _ints(np.subtract), "arith.muli": _ints(np.multiply),
    "arith.divsi": _ints(_quotient), "arith.divui": _ints(_quotient, unsigned),
    "arith.floordivsi": _ints(lambda x, y: x // y), "arith.ceildivsi": _ints(lambda x, y: -(-x // y)),
    "arith.remsi": _ints(_remainder), "arith.remui": _ints(_remainder, unsigned),
    "arith.maxsi": _ints(np.maximum), "arith.maxui": _ints(np.maximum, unsigned),
    "arith.minsi": _ints(np.minimum), "arith.minui": _ints(np.minimum, unsigned),
    "arith.andi": _ints(np.bitwise_and), "arith.ori": _ints(np.bitwise_or), "arith.xori": _ints(np.bitwise_xor),
    "arith.shli": _shift(np.left_shift, signed),
    "arith.shrsi": _shift(np.right_shift, signed), "arith.shrui": _shift(np.right_shift, unsigned),
    "arith.mului_extended": _extended(lambda x, y: x * y, unsigned),
    "arith.mulsi_extended": _extended(lambda x, y: x * y, signed),
    "arith.addui_extended": _extended(lambda x, y: x + y, unsigned),
    "arith.addf": _floats(np.add), "arith.subf": _floats(np.subtract), "arith.mulf": _floats(np.multiply),
    "arith.divf": _floats(np.divide), "arith.remf": _floats(np.fmod), "arith.negf": _floats(np.negative),
    "arith.maximumf": _floats(np.maximum), "arith.minimumf": _floats(np.minimum),
    "arith.maxnumf": _floats(np.fmax), "arith.minnumf": _floats(np.fmin),
    "arith.cmpi": _cmpi, "arith.cmpf": _cmpf, "arith.select": _select,
    "arith.extf": extend_float, "arith.truncf": extend_float, "arith.convertf": extend_float,
    "arith.sitofp": _floats(signed), "arith.uitofp": _floats(unsigned),
    "arith.fptosi": _to_integer(True), "arith.fptoui": _to_integer(False),
    "arith.extsi": _ints(lambda x: x), "arith.extui": _ints(lambda x: x, unsigned), "arith.trunci": _ints(lambda x: x),
    "arith.index_cast": _ints(lambda x: x), "arith.index_castui": _ints(lambda x: x, unsigned),
    "arith.bitcast": _bitcast,
}  # fmt: skip

__all__ = ["ARITH", "bits_of", "high_product", "is_float", "signed", "unsigned", "wrapped"]
