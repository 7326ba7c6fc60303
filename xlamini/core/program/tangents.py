"""Symbolic zeros, linear placeholders, and the type of a tangent."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core.caching.memo import memoised
from xlamini.core.dtypes import ExtendedDType, float0
from xlamini.core.program.avals import ShapedArray, aval_of
from xlamini.core.program.hi_types import HiAval


class Zero:
    """A tangent or cotangent known to be zero without computing anything.

    >>> from xlamini import extend
    >>> zero = extend.Zero(extend.ShapedArray((2,), "float32"))
    >>> zero, extend.is_zero(zero), extend.instantiated(zero)
    (Zero(f32[2]), True, Array([0., 0.], dtype=float32))
    >>> extend.Zero.from_primal_value(jnp.arange(3)).aval.dtype == xlamini.float0
    True
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval: ShapedArray = aval

    @staticmethod
    def from_primal_value(x: Any) -> Zero:
        """The zero tangent of a value."""
        return Zero(tangent_aval(aval_of(x)))

    def __repr__(self) -> str:
        return f"Zero({self.aval.str_short()})"


class Linear:
    """In a transpose rule, an operand that the equation is linear in: without a value, and asked for its cotangent.

    >>> from xlamini import extend
    >>> x = extend.Linear(extend.ShapedArray((), "float32"))
    >>> extend.transpose_rule[lax.mul_p](1.0, 3.0, x)
    [None, Array(3., dtype=float32, weak_type=True)]
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray):
        self.aval: ShapedArray = aval

    def __repr__(self) -> str:
        return f"Linear({self.aval.str_short()})"


class NonlinearError(TypeError):
    """A transpose rule computes with an operand that has no value: it is not linear in all it should be."""


def is_linear(operand: Any) -> bool:
    """Whether an operand of a transpose rule has no value, because its cotangent is asked for.

    >>> is_linear(Linear(ShapedArray((), "float32"))), is_linear(3.0)
    (True, False)
    """
    return type(operand) is Linear


def is_zero(tangent: Any) -> bool:
    """Whether a tangent or cotangent is a symbolic zero.

    >>> is_zero(Zero(ShapedArray((), "float32"))), is_zero(0.0)
    (True, False)
    """
    return type(tangent) is Zero


def is_differentiable(aval: ShapedArray) -> bool:
    """Whether values of this type have tangents other than zero: floating point, complex, and as users' say."""
    dtype = aval.dtype
    if hasattr(dtype, "physical_shape"):
        if isinstance(dtype, ExtendedDType):
            return dtype.has_tangents
        return type(aval) is HiAval and aval.to_tangent_aval().dtype != float0
    return _is_inexact(dtype)


@memoised("helper: inexact dtypes", None)
def _is_inexact(dtype: np.dtype) -> bool:
    # ml_dtypes registers its floats with kind 'V' or 'f'; their integers answer as 'V' too.
    return dtype.kind in "fc" or (dtype.kind == "V" and "float" in dtype.name and dtype != float0)


def tangent_aval(aval: ShapedArray) -> ShapedArray:
    """The type of a tangent of `aval`: its own for inexact dtypes, float0 for the rest."""
    if type(aval) is HiAval:
        return aval.to_tangent_aval()
    if is_differentiable(aval):
        return aval
    return aval.update(dtype=float0, weak_type=False)


def cotangent_aval(aval: ShapedArray) -> ShapedArray:
    """The type of a cotangent of `aval`: that of a tangent, but unreduced where `aval` is reduced, and the reverse."""
    return dual_aval(tangent_aval(aval))


def dual_aval(aval: ShapedArray) -> ShapedArray:
    """The type that is unreduced where `aval` is reduced, and the reverse."""
    return aval if aval.explicit_sharding is None else aval.with_sharding(aval.explicit_sharding.dual)
