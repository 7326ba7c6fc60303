"""Symbolic zeros: what rules get, and may return, for tangents and cotangents that are zero by construction."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import ShapedArray, aval_of, float0, is_differentiable, tangent_aval, tree_map
from xlamini.core.pytree import structure
from xlamini.primitives import zeros
from xlamini.staging import rebuilt


class SymbolicZero:
    """A tangent or cotangent that is symbolically zero, for rules with `symbolic_zeros=True`, which may return it too.

    >>> SymbolicZero.from_primal_value(xlamini.numpy.ones(3)).shape
    (3,)
    """

    def __init__(self, aval: ShapedArray):
        self.aval = aval

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> Any:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def weak_type(self) -> bool:
        return self.aval.weak_type

    @staticmethod
    def from_primal_value(val: Any) -> SymbolicZero:
        """The zero tangent of a value."""
        return SymbolicZero(tangent_aval(aval_of(val)))

    def __repr__(self) -> str:
        return "SymbolicZero"


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """A zero tangent for each leaf of a tree: an array, or with `symbolic_zeros` a `SymbolicZero`.

    >>> zero_from_primal({"w": xlamini.numpy.ones(2)})
    {'w': Array([0., 0.], dtype=float32)}
    """
    return tree_map(lambda x: zero_tangent(aval_of(x), symbolic_zeros), val)


def zero_tangent(aval: ShapedArray, symbolic: bool) -> Any:
    """The zero tangent that a rule is given for a value of this type."""
    if symbolic:
        return SymbolicZero(tangent_aval(aval))
    return rebuilt(_LEAF, [zeros(aval)]) if is_differentiable(aval) else np.zeros(aval.shape, float0)


_LEAF = structure(0)


class CustomVJPPrimal:
    """What a fwd rule with `symbolic_zeros` gets for a leaf of an argument: its `value`, and whether it is `perturbed`.

    What is not perturbed is not differentiated: its cotangent will not be used.

    >>> @xlamini.custom_vjp
    ... def times(x, y):
    ...     return x * y
    >>> def forward(x, y):
    ...     print(x.perturbed, y.perturbed)
    ...     return x.value * y.value, y.value
    >>> times.defvjp(forward, lambda y, g: (g * y, None), symbolic_zeros=True)
    >>> xlamini.grad(times)(2.0, 3.0)
    True False
    Array(3., dtype=float32, weak_type=True)
    """

    __slots__ = ("perturbed", "value")
    perturbed: bool
    value: Any

    def __init__(self, value: Any, perturbed: bool):
        self.value, self.perturbed = value, perturbed

    def __repr__(self) -> str:
        return f"CustomVJPPrimal(value={self.value!r}, perturbed={self.perturbed})"


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The values in a tree of what a fwd rule with `symbolic_zeros` gets.

    >>> custom_vjp_primal_tree_values({"w": CustomVJPPrimal(1.0, True)})
    {'w': 1.0}
    """
    return tree_map(_value, tree)


def _value(x: Any) -> Any:
    if not hasattr(x, "value"):
        raise TypeError(f"custom_vjp_primal_tree_values: the leaves must be CustomVJPPrimal, got {type(x).__name__}")
    return x.value
