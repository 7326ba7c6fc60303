"""Tangents and cotangents in rules: symbolic zeros, operands without a value, and what is being differentiated.

A `Zero` and a `Linear` are pytree nodes without leaves, so that a rule may pass them through `vmap` and `tree.map`.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import float0, register_pytree_node
from xlamini.core.program.activity_analysis import differentiated_input
from xlamini.core.program.tangents import Linear, Zero, is_linear, is_zero
from xlamini.core.tracing.state import state
from xlamini.extend.rules import as_value
from xlamini.primitives.base.tangent_ops import add_tangents, zeros

register_pytree_node(Zero, lambda zero: ((), zero.aval), lambda aval, _: Zero(aval))
register_pytree_node(Linear, lambda operand: ((), operand.aval), lambda aval, _: Linear(aval))


def instantiated(tangent: Any) -> Any:
    """A tangent or cotangent as an array: zeros in place of a symbolic zero.

    >>> from xlamini import extend
    >>> extend.instantiated(extend.Zero(extend.ShapedArray((2,), "float32")))
    Array([0., 0.], dtype=float32)
    """
    if not is_zero(tangent):
        return tangent
    aval = tangent.aval
    return np.zeros(aval.shape, float0) if aval.dtype == float0 else as_value(zeros(aval))


def sum_of_tangents(x: Any, y: Any) -> Any:
    """The sum of two tangents or cotangents of one value, either of which may be None or a symbolic zero.

    Their shapes and dtypes are equal, as those of the value's tangents are.

    >>> from xlamini import extend
    >>> zero = extend.Zero(extend.ShapedArray((), "float32"))
    >>> sum_of_tangents(2.0, None), sum_of_tangents(zero, 3.0), sum_of_tangents(2.0, 3.0)
    (2.0, 3.0, Array(5., dtype=float32, weak_type=True))
    """
    if x is None or y is None:
        return y if x is None else x
    return add_tangents(x, y)


def is_differentiated(x: Any, *, innermost: bool = False) -> bool:
    """Whether a traced value depends on an input of `jvp`, `grad` or the like whose function is being traced now.

    The answer is exact: False for what passed through `stop_gradient` or `floor`, for integers, and for values of a
    function inside that is traced on its own (`jit`, `vmap`). With `innermost`, the function being traced must be the
    one that is differentiated, not one around it.

    >>> from xlamini import extend
    >>> xlamini.grad(lambda x: x * extend.is_differentiated(x))(1.0)
    Array(1., dtype=float32, weak_type=True)
    """
    found = differentiated_input(x)
    return found is not None and (not innermost or found[0] is state.builder)


__all__ = ["Linear", "Zero", "instantiated", "is_differentiated", "is_linear", "is_zero", "sum_of_tangents"]
