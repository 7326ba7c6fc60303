"""Promotion of operands: JAX's promotion of dtypes, NumPy's broadcasting of shapes.

Operators, and the functions of xlamini.numpy, bring operands of any dtypes and shapes; primitives want one dtype, and
one shape but for scalars. `promoted` is the way from the one to the other.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core import (
    Avals,
    Literal,
    ShapeError,
    Tracer,
    Values,
    aval_of,
    canonicalize_dtype,
    issubdtype,
    literal,
    memoised,
    result_type,
    scalar_type_of,
    user_stacklevel,
)
from xlamini.core.dtypes import check_fits
from xlamini.core.flags.config import numpy_dtype_promotion, numpy_rank_promotion
from xlamini.core.program.literals import interned
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.core.tracing.own_operands import user_operands
from xlamini.primitives.elementwise.convert_element_type import convert, number_on_host, warn_of_imaginary_part
from xlamini.primitives.shape.shape import broadcast_in_dim

PYTHON_SCALARS = (bool, int, float, complex)
_OPERANDS = (*PYTHON_SCALARS, np.generic, np.ndarray)


def is_operand(x: Any) -> bool:
    """True if a value can be an operand: an array, a traced value or a number.

    The class is asked for the type, since an object that stands for an array may pass on all attributes of its array.
    """
    return isinstance(x, _OPERANDS) or hasattr(type(x), "aval")


def check_operands(name: str, operands: Values) -> Values:
    """The operands; TypeError, naming the function, for one that is no array or number and has no `__jax_array__`."""
    for position, x in enumerate(operands):
        if not is_operand(x):
            if stands_for_array(x):
                return check_operands(name, [*operands[:position], x.__jax_array__(), *operands[position + 1 :]])
            raise TypeError(
                f"{name}: operand {position} must be an array or a number, got {type(x).__name__}; "
                "make it one with jnp.asarray"
            )
    return operands


def stands_for_array(x: Any) -> bool:
    """True if an object of a foreign class converts itself to an array with a method `__jax_array__`."""
    return hasattr(type(x), "__jax_array__")


def promoted(name: str, *operands: Any) -> Values:
    """Operands in the dtype that the promotion lattice gives them, and of one shape but for scalars."""
    easy = _easy(operands)
    if easy is not None:
        return easy
    values = check_operands(name, operands)
    dtype, weak = result_type(*values, return_weak_type_flag=True)
    check_ranks(name, values)
    return broadcasted_freely(name, *[in_dtype(x, dtype, weak) for x in values])


def promoted_inexact(name: str, *operands: Any) -> Values:
    """Like `promoted`, with integers and booleans as floats."""
    return _promoted_at_least(np.inexact, float_of, name, operands)


def promoted_numeric(name: str, *operands: Any) -> Values:
    """Like `promoted`, with booleans as integers."""
    return _promoted_at_least(np.number, _int_of, name, operands)


def _promoted_at_least(kind: Any, raised: Callable[[Any], Any], name: str, operands: Values) -> Values:
    easy = _easy(operands)
    if easy is not None and issubdtype(aval_of(easy[0]).dtype, kind):
        return easy
    operands = check_operands(name, operands)
    check_ranks(name, operands)
    return broadcasted_freely(name, *_dtypes_at_least(kind, raised, operands))


def _dtypes_at_least(kind: Any, raised: Callable[[Any], Any], operands: Values) -> Values:
    dtype, weak = result_type(*operands, return_weak_type_flag=True)
    if not issubdtype(dtype, kind):
        dtype = raised(dtype)
    return [in_dtype(x, dtype, weak) for x in operands]


def accumulator(dtype: Any) -> Any:
    """The dtype to sum elements of `dtype` in: float32 for halves."""
    return np.dtype(np.float32) if issubdtype(dtype, np.floating) and dtype.itemsize < 4 else dtype


def float_of(dtype: Any) -> np.dtype:
    """The dtype of the values that a function of floats has for integers or booleans: float64 for those of 64 bits."""
    return np.dtype(np.float64 if dtype.itemsize == 8 else np.float32)


def _int_of(dtype: Any) -> np.dtype:
    return canonicalize_dtype(int)


def _easy(operands: Values) -> Sequence[Any] | None:
    """The operands if nothing is to be done but to write a Python number as a literal; else None.

    As in `is_operand`, an object that stands for an array has no type of its own.
    """
    if len(operands) == 2:
        x, y = operands
        first = x.aval if hasattr(type(x), "aval") else None
        second = y.aval if hasattr(type(y), "aval") else None
        if first is not None and second is None and _adapts(type(y), first.dtype):
            return x, number(y, first.dtype, first.weak_type)
        if second is not None and first is None and _adapts(type(x), second.dtype):
            return number(x, second.dtype, second.weak_type), y
        return operands if first is second and first is not None else None
    first = getattr(operands[0], "aval", None)
    alike = all(hasattr(type(x), "aval") and x.aval is first for x in operands)
    return operands if alike else None


_ORDER = {bool: 0, int: 1, float: 2, complex: 3}


@memoised("helper: Python numbers beside dtypes", None)
def _adapts(kind: type, dtype: Any) -> bool:
    """True if a Python number of this type takes on the dtype of the array operand."""
    if kind not in _ORDER or kind is bool or hasattr(dtype, "physical_shape"):
        return False
    return _ORDER[kind] <= _ORDER[scalar_type_of(dtype)]


def promoted_dtypes(*operands: Any) -> Values:
    """Operands in the dtype that JAX's promotion lattice gives them."""
    dtype, weak = result_type(*operands, return_weak_type_flag=True)
    return [in_dtype(x, dtype, weak) for x in operands]


def promoted_inexact_dtypes(*operands: Any) -> Values:
    """Like `promoted_dtypes`, with integers and booleans as floats."""
    return _dtypes_at_least(np.inexact, float_of, operands)


def check_members(operands: Sequence[Any]) -> None:
    """OverflowError for a Python int in a list of operands that the dtype of an array in it cannot hold."""
    numbers = [x for x in operands if type(x) is int]
    if not numbers:
        return
    for x in operands:
        if hasattr(type(x), "aval") or isinstance(x, np.ndarray):
            for number in numbers:
                check_fits(number, x.dtype)


def in_dtype(x: Any, dtype: Any, weak: bool = False) -> Any:
    """A value in a dtype; a Python number becomes a literal of it."""
    if type(x) in PYTHON_SCALARS:
        if type(x) is complex:
            warn_of_imaginary_part(dtype)
        return number(x, dtype, weak)
    if type(x) is Tracer and type(x.variable) is Literal and type(x.variable.val) is int and x.aval.weak_type:
        return number(x.variable.val, dtype, weak)  # a Python number that a function made an operand of
    return convert(x, dtype, weak)


def number(x: Any, dtype: Any, weak: bool = False) -> Literal:
    """A Python number as a literal.

    OverflowError for an int beyond an integer dtype, as in NumPy, or beyond Python ints in programs, int32 or int64.
    """
    return interned(_number, x, dtype, weak)


def _number(x: Any, dtype: Any, weak: bool) -> Literal:
    if type(x) is int:
        check_fits(x, dtype if issubdtype(dtype, np.integer) else canonicalize_dtype(int))
    return literal(number_on_host(np.asarray(x), dtype), dtype, weak)


def broadcasted(name: str, *operands: Any) -> Values:
    """Operands of rank 0, or of the one shape that NumPy's broadcasting gives them."""
    check_ranks(name, operands)
    return broadcasted_freely(name, *operands)


def broadcasted_freely(name: str, *operands: Any) -> Values:
    """The same for functions whose operands may differ in rank, whatever flag `numpy_rank_promotion` says."""
    avals = [aval_of(x) for x in operands]
    shapes = {aval.shape for aval in avals} - {()}
    if len(shapes) < 2:
        return operands
    try:
        shape = broadcast_shapes(*shapes)
    except ValueError:
        raise ShapeError(
            f"{name}: Incompatible shapes for broadcasting: {_listed(avals)}; sizes must be equal or 1, counted from "
            "the last axis"
        ) from None
    return [broadcast_to(x, shape) for x in operands]


def check_dtypes(*operands: Any) -> None:
    """Refuse operands that the user gave and the strict promotion of dtypes does not take, in functions that convert.

    Under the standard promotion nothing is asked.
    """
    if numpy_dtype_promotion.value == "strict":
        result_type(*operands)


def check_ranks(name: str, operands: Values, cores: Sequence[int] | None = None) -> None:
    """Refuse operands of different ranks, as the flag `numpy_rank_promotion` says, if the user gave them.

    Scalars are of any rank. Of each operand, the last axes that are its core, which does not broadcast, do not count.
    """
    if numpy_rank_promotion.value != "allow" and _differ_in_rank(operands, cores):
        own = set(map(id, user_operands(operands)))
        if _differ_in_rank(operands, cores, own):
            _refuse_ranks(name, [aval_of(x) for x in operands if id(x) in own])


def _differ_in_rank(operands: Values, cores: Sequence[int] | None, among: set[int] | None = None) -> bool:
    ranks = [len(aval_of(x).shape) for x in operands]
    each = zip(operands, ranks, cores or [0] * len(ranks), strict=True)
    return len({rank - core for x, rank, core in each if rank and (among is None or id(x) in among)}) > 1


def _refuse_ranks(name: str, avals: Avals) -> None:
    message = (
        f"{name}: operands of different rank could not be broadcast together, {_listed(avals)}, and "
        f"numpy_rank_promotion is {numpy_rank_promotion.value!r}; give them one rank with x[None] or reshape"
    )
    if numpy_rank_promotion.value == "raise":
        raise ValueError(message)
    warnings.warn(message, UserWarning, user_stacklevel())


def _listed(avals: Avals) -> str:
    return ", ".join(aval.str_short(short_dtypes=False) for aval in avals)


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """A value broadcast to `shape`; a scalar is returned unchanged."""
    own = aval_of(x).shape
    if own in ((), shape):
        return x
    return broadcast_in_dim(x, shape, range(len(shape) - len(own), len(shape)))
