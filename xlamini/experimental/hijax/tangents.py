"""Tangents and cotangents as rules see them, by JAX's names."""
from __future__ import annotations

from typing import Any

from xlamini.core import is_linear
from xlamini.extend.tangents import instantiated


def instantiate_zeros(tangent: Any) -> Any:
    """A tangent or cotangent as an array: zeros in place of a symbolic zero.

    >>> from xlamini.extend import ShapedArray, Zero
    >>> instantiate_zeros(Zero(ShapedArray((2,), "float32")))
    Array([0., 0.], dtype=float32)
    """
    return instantiated(tangent)


def is_undefined_primal(x: Any) -> bool:
    """In a transpose rule, whether an operand has no value, as the operation is linear in it.

    >>> from xlamini import extend
    >>> x = extend.Linear(extend.ShapedArray((), "float32"))
    >>> [is_undefined_primal(operand) for operand in (x, 3.0)]
    [True, False]
    """
    return is_linear(x)
