"""How an elementwise function is declared: a signature, a docstring, and the operation that it is.

    @ufunc(trigonometric.sin, promoted_inexact)
    def sin(x: ArrayLike, /) -> Array:
        \"""Sine of each element, in radians.\"""

Its operands are arrays and numbers of any dtypes and shapes; the second argument of `ufunc` says how they are brought
together.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from xlamini.core.dtypes import issubdtype
from xlamini.core.jaxpr import Literal
from xlamini.core.primitive import Primitive
from xlamini.core.tracer import aval_of
from xlamini.primitives.convert import convert
from xlamini.primitives.elementwise import Kinds, kind_of
from xlamini.primitives.promotion import check_operands, promoted, promoted_inexact
from xlamini.staging.run.composite import composite
from xlamini.staging.trace.tracing import visible

F = TypeVar("F", bound=Callable[..., Any])
Together = Callable[..., Sequence[Any]]


def ufunc(operation: Callable[..., Any], together: Together = promoted) -> Callable[[F], F]:
    """Decorator of a declaration: `operation` on the operands that `together(name, *operands)` gives."""
    apply = operation.bind if isinstance(operation, Primitive) else operation

    def declare(declaration: F) -> F:
        name, arity = declaration.__name__, declaration.__code__.co_argcount

        @functools.wraps(declaration)
        def function(*operands: Any, **named: Any) -> Any:
            if named or len(operands) != arity:
                declaration(*operands, **named)  # raises Python's own TypeError if they do not fit
                operands = inspect.signature(declaration).bind(*operands, **named).args
            ready = together(name, *operands)
            if all(type(x) is Literal for x in ready):  # numbers alone, while tracing
                ready = [visible(x) for x in ready]
            return apply(*ready)

        return composite()(function)  # type: ignore[return-value]

    return declare


def as_they_are(name: str, *operands: Any) -> Sequence[Any]:
    """For operations that bring their operands together themselves, or take any."""
    check_operands(name, operands)
    return operands


def as_strong_floats(name: str, *operands: Any) -> Sequence[Any]:
    """Like `promoted_inexact`, for functions that make Python integers floats that are not weakly typed."""
    ready = promoted_inexact(name, *operands)
    whole = not any(issubdtype(aval_of(x).dtype, np.inexact) for x in operands)
    return [convert(x, aval_of(x).dtype) for x in ready] if whole else ready


def for_kinds(kinds: Kinds, together: Together = promoted) -> Together:
    """Like `together`, with a TypeError for operands that are not of these kinds."""
    def checked(name: str, *operands: Any) -> Sequence[Any]:
        ready = together(name, *operands)
        dtype = aval_of(ready[0]).dtype
        if kind_of(dtype) not in kinds:
            accepted = ", ".join(k.name.lower() for k in kinds if k.name)
            raise TypeError(f"{name} does not accept dtype {dtype.name}; it takes {accepted} (convert with .astype)")
        return ready

    return checked
