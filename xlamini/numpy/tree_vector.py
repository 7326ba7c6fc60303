"""ravel_pytree: a pytree of arrays as one vector, and the way back."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from xlamini.core import PyTreeDef, ShapedArray, aval_of, flatten_from_user, result_type, unflatten
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.numpy import concatenate, ravel, zeros
from xlamini.numpy.arguments import as_operand
from xlamini.primitives import cast, convert, reshape, slice_in_dim

__all__ = ["ravel_pytree"]


def ravel_pytree(pytree: Any) -> tuple[Any, Callable[[Any], Any]]:
    """All arrays of a pytree in one vector, of the dtype that they promote to, and a function that undoes it.

    That function takes a vector of the same length (else ValueError) and dtype, and gives back the pytree with its
    shapes and dtypes; where all leaves had one dtype it takes any, and the leaves are of that.

    >>> flat, unravel = ravel_pytree({"b": jnp.zeros(2), "w": jnp.ones((1, 2))})
    >>> flat
    Array([0., 0., 1., 1.], dtype=float32)
    >>> unravel(flat * 2)["w"]
    Array([[2., 2.]], dtype=float32)
    """
    leaves, tree = flatten_from_user(pytree)
    operands = [as_operand("ravel_pytree", leaf) for leaf in leaves]
    avals = tuple(aval_of(x) for x in operands)
    if not operands:
        return zeros(0), Unravel(tree, avals, np.dtype("float32"))
    dtype, weak = result_type(*operands, return_weak_type_flag=True)
    weak = weak and len({aval.dtype for aval in avals}) == 1
    flat = concatenate([convert(ravel(x), dtype, weak) for x in operands])
    return flat, Unravel(tree, avals, dtype)


@dataclass(frozen=True)
class Unravel:
    """The function from a vector back to a pytree; equal for equal structures, shapes and dtypes."""

    tree: PyTreeDef
    avals: tuple[ShapedArray, ...]
    dtype: np.dtype

    @api_boundary
    def __call__(self, flat: Any) -> Any:
        x = as_operand("unravel", flat)
        self._check(aval_of(x))
        parts, start = [], 0
        mixed = any(aval.dtype != self.dtype for aval in self.avals)
        for aval in self.avals:
            part = reshape(slice_in_dim(x, start, start + aval.size), aval.shape)
            parts.append(cast(part, aval.dtype) if mixed else part)
            start += aval.size
        return unflatten(self.tree, parts)

    def _check(self, given: ShapedArray) -> None:
        total = sum(math.prod(aval.shape) for aval in self.avals)
        if given.shape != (total,):
            raise ValueError(f"unravel: a vector of {total} elements is needed, got shape {given.shape}")
        if given.dtype != self.dtype and any(aval.dtype != self.dtype for aval in self.avals):
            raise TypeError(
                f"unravel: a vector of dtype {self.dtype} is needed, got {given.dtype}; convert it with "
                f".astype('{self.dtype}')"
            )
