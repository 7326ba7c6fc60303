"""Declarations of special functions: a formula, and partial derivatives where the formula's own are inaccurate.

    @special(lambda x, out: 2 * x * out - 2 / math.sqrt(math.pi))
    def erfcx(x: ArrayLike) -> Array:
        \"""…\"""

Operands of any real dtypes and shapes are promoted and broadcast; floats narrower than 32 bits are computed in float32.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from xlamini.core import aval_of
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.numpy.ufuncs.declaration import for_kinds, ufunc
from xlamini.primitives import FLOAT, convert, promoted_inexact
from xlamini.primitives.base.broadcasting import spread
from xlamini.primitives.base.dtype_kinds import Kinds
from xlamini.staging.trace.tracing import visible
from xlamini.transforms.custom.custom_jvp import custom_jvp

F = TypeVar("F", bound=Callable[..., Any])


def special(*partials: Callable[..., Any], accepts: Kinds = FLOAT, weak: bool = False) -> Callable[[F], F]:
    """Decorator: an elementwise function, with `partial(*operands, out)` for each operand, or none for all.

    The result of Python numbers is weakly typed if `weak`: where it is in JAX.
    """

    def declare(formula: F) -> F:
        inner = _with_partials(formula, partials) if partials else formula
        return ufunc(functools.partial(_in_wide, inner, weak), for_kinds(accepts, promoted_inexact))(formula)

    return declare


def _in_wide(inner: Callable[..., Any], weak: bool, *operands: Any) -> Any:
    avals = [aval_of(x) for x in operands]
    whole = avals[0].update(shape=broadcast_shapes(*(a.shape for a in avals)))
    dtype = avals[0].dtype
    wide = dtype if dtype.itemsize > 2 else np.dtype(np.float32)
    arrays = [convert(spread(x, whole), wide) for x in operands]
    return convert(inner(*visible(arrays)), dtype, weak and all(a.weak_type for a in avals))


def _with_partials(formula: Callable[..., Any], partials: Sequence[Callable[..., Any]]) -> Any:
    inner = custom_jvp(formula)
    inner.defjvps(*map(_rule, partials))
    return inner


def _rule(partial: Callable[..., Any]) -> Callable[..., Any]:
    def rule(tangent: Any, out: Any, *operands: Any) -> Any:
        return tangent * partial(*operands, out)

    return rule
