"""Declarations of elementwise functions: a signature, a docstring, and the operation behind them.

    @ufunc(trigonometric.sin, promoted_inexact)
    def sin(x: ArrayLike, /) -> Array:
        \"""Sine of each element, in radians.\"""

Its operands are arrays and numbers of any dtypes and shapes; the second argument of `ufunc` promotes and broadcasts
them.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from xlamini.core import Literal, Primitive, aval_of, canonicalize_dtype, issubdtype
from xlamini.primitives import check_operands, convert, kind_of, promoted, promoted_inexact
from xlamini.primitives.base.dtype_kinds import Kinds
from xlamini.staging import composite
from xlamini.staging.trace.tracing import visible

F = TypeVar("F", bound=Callable[..., Any])
Promotion = Callable[..., Sequence[Any]]


def ufunc(operation: Callable[..., Any], promote: Promotion = promoted) -> Callable[[F], F]:
    """Decorator of a declaration: `operation` on the operands that `promote(name, *operands)` returns."""
    apply = operation.bind if isinstance(operation, Primitive) else operation

    def declare(declaration: F) -> F:
        name, arity = declaration.__name__, declaration.__code__.co_argcount

        @functools.wraps(declaration)
        def function(*operands: Any, **named: Any) -> Any:
            if named or len(operands) != arity:
                declaration(*operands, **named)  # raises Python's own TypeError if they do not fit
                operands = inspect.signature(declaration).bind(*operands, **named).args
            ready = promote(name, *operands)
            if all(type(x) is Literal for x in ready):  # numbers alone, while tracing
                ready = visible(ready)
            return apply(*ready)

        return composite()(function)  # type: ignore[return-value]

    return declare


def unpromoted(name: str, *operands: Any) -> Sequence[Any]:
    """Operands without promotion, for operations that promote their own operands, or take any."""
    check_operands(name, operands)
    return operands


def as_default_floats(name: str, *operands: Any) -> Sequence[Any]:
    """Like `promoted_inexact`, for functions that make all integers floats of the default dtype, not weakly typed."""
    whole = not any(issubdtype(aval_of(x).dtype, np.inexact) for x in check_operands(name, operands))
    ready = promoted_inexact(name, *operands)
    return [convert(x, canonicalize_dtype(float)) for x in ready] if whole else ready


def for_kinds(kinds: Kinds, promote: Promotion = promoted) -> Promotion:
    """`promote`, with a TypeError for operands that are not of these kinds."""
    def checked(name: str, *operands: Any) -> Sequence[Any]:
        ready = promote(name, *operands)
        dtype = aval_of(ready[0]).dtype
        if kind_of(dtype) not in kinds:
            accepted = ", ".join(k.name.lower() for k in kinds if k.name)
            raise TypeError(f"{name} does not accept dtype {dtype.name}; it takes {accepted} (convert with .astype)")
        return ready

    return checked
