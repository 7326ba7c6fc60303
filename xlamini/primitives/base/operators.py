"""Python's operators on values of any dtypes and shapes, as functions; traced values and literals get them as methods.

`promoted` (promotion.py) is the one place where operands are promoted and broadcast. Rules of primitives are written
with these operators.
"""
from __future__ import annotations

import operator as by_value
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from xlamini.core import Literal, Tracer, aval_of, inline_cached, issubdtype, trim
from xlamini.core.dtypes import fits, is_weak
from xlamini.primitives.base.dtype_kinds import BOOL, COMPLEX, INTEGER, SIGNED, UNSIGNED, kind_of
from xlamini.primitives.base.promotion import (
    PYTHON_SCALARS,
    accumulator,
    broadcasted,
    check_dtypes,
    check_operands,
    in_dtype,
    is_operand,
    promoted,
    promoted_inexact,
    promoted_numeric,
    stands_for_array,
)
from xlamini.primitives.elementwise import arithmetic, bitwise, comparison, rounding
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.power import integer_pow, pow
from xlamini.primitives.elementwise.select import by_parts, where
from xlamini.primitives.placement.identity import stop_gradient

Function = Callable[..., Any]


_PLAIN: dict[Function, Any] = {}
"""The operators that are one primitive, if their operands are of one type."""


def _plain(primitive: Any, name: str) -> Function:
    """The operator that is one primitive on promoted operands."""

    def operator(*operands: Any) -> Any:
        return primitive.bind(*promoted(name, *operands))

    operator.__name__ = name
    _PLAIN[operator] = primitive
    return operator


add: Function
multiply: Function
subtract: Function
add, subtract, multiply = (_plain(p, p.name) for p in (arithmetic.add, arithmetic.sub, arithmetic.mul))
bitwise_and: Final = _plain(bitwise.bitwise_and, "and")
bitwise_or: Final = _plain(bitwise.bitwise_or, "or")
bitwise_xor: Final = _plain(bitwise.bitwise_xor, "xor")
bitwise_not: Final = _plain(bitwise.bitwise_not, "not")
left_shift: Final = _plain(bitwise.shift_left, "left_shift")
negative: Final = _plain(arithmetic.neg, "neg")


# --- comparisons: complex numbers have the order of their real parts, then of their imaginary ones


def _comparison(primitive: Any, compare: Function) -> Function:
    name, is_order = primitive.name, primitive not in (comparison.eq, comparison.ne)

    def operator(x: Any, y: Any) -> Any:
        if (type(x) is int or type(y) is int) and (found := _decided(compare, x, y)) is not None:
            return found
        x, y = promoted(name, x, y)
        if is_order and kind_of(aval_of(x).dtype) in COMPLEX:
            return by_parts(primitive.bind, x, y)
        return primitive.bind(x, y)

    operator.__name__ = name
    return operator


def _decided(compare: Function, x: Any, y: Any) -> Any:
    """A comparison with a Python int beyond the dtype, which has one answer for all elements; None for others."""
    array, number = (y, x) if type(x) is int else (x, y)
    if not is_operand(array) or type(array) in PYTHON_SCALARS or fits(number, aval_of(array).dtype):
        return None
    holds = compare(0, number) if array is x else compare(number, 0)
    return (comparison.eq if holds else comparison.ne).bind(array, array)


equal: Final = _comparison(comparison.eq, by_value.eq)
not_equal: Final = _comparison(comparison.ne, by_value.ne)
less: Final = _comparison(comparison.lt, by_value.lt)
less_equal: Final = _comparison(comparison.le, by_value.le)
greater: Final = _comparison(comparison.gt, by_value.gt)
greater_equal: Final = _comparison(comparison.ge, by_value.ge)
_PLAIN.update({equal: comparison.eq, not_equal: comparison.ne})


# --- division


def true_divide(x: Any, y: Any) -> Any:
    """`x / y`; integers are divided as floats."""
    return arithmetic.div.bind(*promoted_inexact("div", x, y))


def floor_divide(x: Any, y: Any) -> Any:
    """`x // y`, rounded towards minus infinity."""
    x, y = promoted_numeric("floor_divide", x, y)
    kind = kind_of(aval_of(x).dtype)
    if kind in COMPLEX:
        raise TypeError("floor_divide: complex numbers cannot be rounded down; divide with x / y")
    if kind in UNSIGNED:
        return arithmetic.div.bind(x, y)
    if kind in SIGNED:
        quotient, rest = arithmetic.div.bind(x, y), arithmetic.rem.bind(x, y)
        crosses = _crosses_zero(rest, y) if _never_zero(y) else _of_other_sign(rest, y)
        return where(crosses, quotient - 1, quotient)
    dtype = aval_of(x).dtype
    wide = accumulator(dtype)  # a quotient that is rounded to a half may be the next whole number
    if wide == dtype:
        return _float_floor_divide(x, y)
    return convert(_float_floor_divide(in_dtype(x, wide), in_dtype(y, wide)), dtype)


def remainder(x: Any, y: Any) -> Any:
    """`x % y`, with the sign of y, also of a zero; 0 for an integer and y = 0."""
    x, y = promoted_numeric("remainder", x, y)
    rest = arithmetic.rem.bind(x, y)
    if kind_of(aval_of(x).dtype) not in INTEGER:
        return _float_remainder(rest, y)
    signed = where(_crosses_zero(rest, y), rest + y, rest)
    return signed if _never_zero(y) else where(equal(y, 0), 0, signed)


def _float_remainder(rest: Any, y: Any) -> Any:
    # What is subtracted from the zero is 0 too, and gives it the derivative of `rest`.
    zero = 0 / stop_gradient(y) - (stop_gradient(rest) - rest)
    signed = where(not_equal(less(rest, 0), less(y, 0)), rest + y, rest)
    return where(not_equal(rest, 0), signed, zero)


def divmod(x: Any, y: Any) -> tuple[Any, Any]:
    """`(x // y, x % y)`."""
    x, y = promoted_numeric("divmod", x, y)
    return floor_divide(x, y), remainder(x, y)


def _crosses_zero(rest: Any, y: Any) -> Any:
    """A mask of nonzero remainders of truncated division whose sign differs from that of y."""
    return bitwise_and(not_equal(less(rest, 0), less(y, 0)), not_equal(rest, 0))


def _of_other_sign(rest: Any, y: Any) -> Any:
    """The mask of `_crosses_zero`, extended to y == 0, as in JAX."""
    return bitwise_and(not_equal(arithmetic.sign.bind(rest), arithmetic.sign.bind(y)), not_equal(rest, 0))


def _float_floor_divide(x: Any, y: Any) -> Any:
    rest = arithmetic.rem.bind(x, y)
    quotient = arithmetic.div.bind(*broadcasted("floor_divide", x - rest, y))
    whole = where(_crosses_zero(rest, y), quotient - 1, quotient)
    ratio = arithmetic.div.bind(*broadcasted("floor_divide", x, y))
    if not _never_zero(y):
        whole = where(equal(y, 0), ratio, whole)
    return rounding.round(where(equal(whole, 0), 0 * ratio, whole))


def _never_zero(y: Any) -> bool:
    return type(y) is Literal and y.val != 0


# --- powers


def power(x: Any, y: Any) -> Any:
    """`x ** y`; a Python or NumPy integer y becomes multiplications."""
    if is_static_integer(y):
        check_operands("power", (x,))
        return integer_pow(_numeric(x, y), int(y))
    return general_power(x, y)


def is_static_integer(y: Any) -> bool:
    """True if an exponent is static: a concrete int, and no bool."""
    return isinstance(y, int | np.integer) and not isinstance(y, bool)


def _numeric(x: Any, y: Any) -> Any:
    """The base in the dtype of the result."""
    dtype = aval_of(x).dtype
    if issubdtype(dtype, np.inexact):
        return x
    x = promoted_numeric("power", x, y)[0]
    return convert(x, aval_of(x).dtype) if issubdtype(dtype, np.bool_) else x


def general_power(x: Any, y: Any) -> Any:
    """`x ** y` with an exponent that the program gets as a value."""
    check_operands("power", (x, y))
    base, exponent = aval_of(x).dtype, aval_of(y).dtype
    check_dtypes(x, y)
    if issubdtype(base, np.inexact) and issubdtype(exponent, np.integer):
        return pow.bind(*broadcasted("power", x, in_dtype(y, exponent, is_weak(y))))
    x, y = promoted_numeric("power", x, y)
    return _integer_power(x, y) if kind_of(aval_of(x).dtype) in INTEGER else pow.bind(x, y)


_EXPONENT_BITS = 6


def _integer_power(x: Any, y: Any) -> Any:
    """Repeated squaring. From 2 ** 6 on, a power of an even number has no bit left, and of an odd one the low bits
    count. So it is for negative exponents, as in JAX: 1 and -1 have their powers, other numbers have no meaningful one.
    """
    result = where(bitwise_and(greater_equal(y, 1 << _EXPONENT_BITS), equal(x & 1, 0)), 0, 1)
    result = in_dtype(result, aval_of(x).dtype)
    for bit in range(_EXPONENT_BITS):
        result = where(not_equal(y & (1 << bit), 0), multiply(result, x), result)
        x = multiply(x, x)
    return result


# --- the others


def right_shift(x: Any, y: Any) -> Any:
    """`x >> y`; copies of the sign come in at the top of signed integers."""
    x, y = promoted("right_shift", x, y)
    unsigned = kind_of(aval_of(x).dtype) in UNSIGNED
    return (bitwise.shift_right_logical if unsigned else bitwise.shift_right_arithmetic).bind(x, y)


def absolute(x: Any) -> Any:
    """`abs(x)`; bools and unsigned integers are their own."""
    check_operands("abs", (x,))
    return x if kind_of(aval_of(x).dtype) in UNSIGNED | BOOL else arithmetic.abs.bind(*promoted("abs", x))


def positive(x: Any) -> Any:
    """`+x`."""
    return x


BINARY: dict[str, Function] = {
    "add": add,
    "sub": subtract,
    "mul": multiply,
    "truediv": true_divide,
    "floordiv": floor_divide,
    "mod": remainder,
    "divmod": divmod,
    "pow": power,
    "and": bitwise_and,
    "or": bitwise_or,
    "xor": bitwise_xor,
    "lshift": left_shift,
    "rshift": right_shift,
}
COMPARISONS: dict[str, Function] = {
    "eq": equal,
    "ne": not_equal,
    "lt": less,
    "le": less_equal,
    "gt": greater,
    "ge": greater_equal,
}
UNARY: dict[str, Function] = {"neg": negative, "pos": positive, "abs": absolute, "invert": bitwise_not}


def accepts(operator: str, other: Any) -> bool:
    """True if an array's operator takes this operand; TypeError for a list, which Python would compare by identity."""
    if is_operand(other) or stands_for_array(other):
        return True
    if isinstance(other, list | tuple):
        raise TypeError(
            f"unsupported operand types for {operator}: an array and a {type(other).__name__}; "
            "make the latter an array with jnp.asarray"
        )
    return False


def _methods(name: str, operator: Function) -> tuple[Function, Function]:
    primitive = _PLAIN.get(operator)

    def method(self: Any, other: Any) -> Any:
        try:  # in place of `api_boundary`, which would cost a call more
            if type(other) is Tracer:
                if primitive is not None and other.aval is self.aval:
                    return primitive.bind(self, other)
                return inline_cached(operator, (self, other), {})
            return operator(self, other) if accepts(name, other) else NotImplemented
        except Exception as error:
            trim(error)
            raise

    def reflected(self: Any, other: Any) -> Any:
        return operator(other, self) if accepts(name, other) else NotImplemented

    return method, reflected


def _install(kind: Any) -> None:
    for name, operator in BINARY.items():
        method, reflected = _methods(name, operator)
        setattr(kind, f"__{name}__", method)
        setattr(kind, f"__r{name}__", reflected)
    if kind is Tracer:  # literals are compared by identity, as parts of a jaxpr
        for name, operator in COMPARISONS.items():
            setattr(kind, f"__{name}__", _methods(name, operator)[0])
    for name, operator in UNARY.items():
        setattr(kind, f"__{name}__", _unary(operator))


def _unary(operator: Function) -> Function:
    def method(self: Any) -> Any:
        return operator(self)

    return method


for _kind in (Tracer, Literal):
    _install(_kind)
    setattr(_kind, "__array_priority__", 100)  # noqa: B010  (NumPy's operators give way to ours)
