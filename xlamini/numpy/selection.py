"""Selection between values: where, select, and the replacement of NaN and infinities."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from xlamini.core import finfo
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.indexing.take import take_along_axis
from xlamini.primitives import (
    COMPLEX,
    FLOAT,
    broadcasted_freely,
    check_operands,
    convert,
    expand_dims,
    in_dtype,
    kind_of,
    promoted_dtypes,
    squeeze,
    where as _choose,
)
from xlamini.primitives.base import operators
from xlamini.primitives.base.promotion import check_members
from xlamini.primitives.elementwise import complex
from xlamini.primitives.placement.reshard import scalars_as_sums
from xlamini.primitives.reductions.arg_extrema import argmax
from xlamini.primitives.reductions.reductions import reduce_or
from xlamini.primitives.shape.joined_rows import is_rows
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike

FEW = 4
"""So many rows `select` takes apart."""


@overload
def where(
    condition: ArrayLike, x: ArrayLike, y: ArrayLike, /, *, size: int | None = None, fill_value: Any = None
) -> Array: ...
@overload
def where(
    condition: ArrayLike, x: None = None, y: None = None, /, *, size: int | None = None, fill_value: Any = None
) -> tuple[Array, ...]: ...
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The elements of `x` where the condition holds, else those of `y`; without both, `nonzero(condition)`.

    All three broadcast; `x` and `y` are promoted to one dtype. `size` and `fill_value` are for `nonzero`.

    >>> where(xlamini.numpy.array([True, False]), 1, 2.5)
    Array([1. , 2.5], dtype=float32, weak_type=True)
    """
    if x is None and y is None:
        from xlamini.numpy.searching import nonzero  # imported here, as few calls are of this form

        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise TypeError("where: both x and y are needed, or neither of them")
    if size is not None or fill_value is not None:
        raise ValueError("where: size and fill_value are for the form without x and y")
    return _where(condition, x, y)


@composite()
def _where(condition: Any, x: Any, y: Any) -> Any:
    condition, x, y = check_operands("where", (condition, x, y))
    x, y = scalars_as_sums(promoted_dtypes(x, y))
    return _choose(*broadcasted_freely("where", convert(condition, np.dtype(bool)), x, y))


@api_boundary
def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0) -> Array:
    """The elements of the first choice whose condition holds, and `default` where none does.

    >>> select([xlamini.numpy.array([True, False])], [xlamini.numpy.array([1, 2])], 9)
    Array([1, 9], dtype=int32)
    """
    choices = choicelist if isinstance(choicelist, list | tuple) else (choicelist,)
    check_members((*choices, default))
    return _select(condlist, choicelist, default)


@composite(ints_fit=True)
def _select(condlist: Any, choicelist: Any, default: Any) -> Any:
    if _many_rows(condlist, choicelist):
        return _selected_rows(condlist, choicelist, default)
    conditions = list(condlist)
    if len(conditions) != len(choicelist) or not conditions:
        raise ValueError(f"select: {len(conditions)} conditions, but {len(choicelist)} choices; give one for each")
    *choices, chosen = promoted_dtypes(*choicelist, default)
    for condition, choice in zip(reversed(conditions), reversed(choices), strict=True):
        chosen = _where(condition, choice, chosen)
    return chosen


def _many_rows(conditions: Any, choices: Any) -> bool:
    """True for two arrays of equally many rows of one rank, more than a few of them: a chain is fastest for these."""
    if not (is_rows(conditions) and is_rows(choices)) or np.ndim(conditions) != np.ndim(choices):
        return False
    return len(conditions) == len(choices) > FEW


def _selected_rows(conditions: Any, choices: Any, default: Any) -> Any:
    """The rows stay together: a slice for each would be copied, and each be a step of a chain."""
    choices, default = promoted_dtypes(choices, default)
    holds, choices = broadcasted_freely("select", convert(conditions, np.dtype(bool)), choices)
    first = expand_dims(argmax(holds, 0, np.int32), (0,))
    chosen = take_along_axis(choices, first, 0, "promise_in_bounds", wrap_negative_indices=False)
    return _where(reduce_or(holds, (0,)), squeeze(chosen, (0,)), default)


def piecewise(
    x: ArrayLike, condlist: Any, funclist: Sequence[ArrayLike | Callable[..., Any]], *args: Any, **kw: Any
) -> Array:
    """A piecewise function: the value of the last function whose condition holds; one function more is the default.

    Functions are called with all of `x` and `*args, **kw`; numbers are constant functions.

    >>> piecewise(xlamini.numpy.arange(3.0), [xlamini.numpy.arange(3) > 1], [lambda v: 10 * v, -1.0])
    Array([-1., -1., 20.], dtype=float32)
    """
    array = as_operand("piecewise", x)
    conditions = list(condlist) if isinstance(condlist, list | tuple) or np.ndim(condlist) > array.ndim else [condlist]
    functions = list(funclist)
    if len(functions) - len(conditions) not in (0, 1):
        raise ValueError(
            f"piecewise: {len(functions)} functions for {len(conditions)} conditions; give one for each, or one more"
        )
    values = [f(array, *args, **kw) if callable(f) else f for f in functions]
    chosen = values.pop() if len(values) > len(conditions) else 0
    for condition, value in zip(conditions, values, strict=True):
        chosen = _where(condition, value, chosen)
    return convert(_where(operators.equal(array, array), chosen, chosen), array.dtype)


@composite()
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """`x` with numbers in the place of NaN and of the infinities: 0, and the dtype's largest and smallest.

    As in JAX, and unlike NumPy, NaN goes first: an infinity given for it is replaced like the others.

    >>> nan_to_num(xlamini.numpy.array([math.nan, 1.0]))
    Array([0., 1.], dtype=float32)
    """
    array = as_operand("nan_to_num", x)
    kind = kind_of(array.dtype)
    if kind in COMPLEX:
        parts = complex.real(array), complex.imag(array)
        return complex.complex(*(nan_to_num(part, nan=nan, posinf=posinf, neginf=neginf) for part in parts))
    if kind not in FLOAT:
        return array
    limits = finfo(array.dtype)
    array = _choose(operators.not_equal(array, array), in_dtype(nan, array.dtype), array)
    for infinity, given, largest in ((math.inf, posinf, limits.max), (-math.inf, neginf, limits.min)):
        number = in_dtype(float(largest) if given is None else given, array.dtype)
        array = _choose(operators.equal(array, infinity), number, array)
    return array
