"""The order of dimensions in which XLA's compiler for the CPU has a fast convolution: features last.

The compiler brings convolutions into this order itself, but only those of a program's entry. In a function that is
called, as repeated layers are, or in the body of a loop it takes a loop over scalars for any other order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini.core import ShapedArray
from xlamini.primitives.shape.shape import transpose
from xlamini.primitives.windows.conv_numbers import ConvDimensionNumbers, features_last

_RANKS = {"float32": (3, 4, 5), "float64": (4,)}
"""The numbers of dimensions for which the compiler has a fast convolution."""


def needs_features_last(
    lhs: ShapedArray, rhs: ShapedArray, *, dimension_numbers: ConvDimensionNumbers, batch_group_count: int, **_: Any
) -> bool:
    """Whether the convolution would be fast with its features last, and is not."""
    fast = lhs.ndim in _RANKS.get(lhs.dtype.name, ()) and batch_group_count == 1
    return fast and dimension_numbers != features_last(lhs.ndim)


def with_features_last(
    bind: Callable[..., Any], lhs: Any, rhs: Any, *, dimension_numbers: ConvDimensionNumbers, **params: Any
) -> Any:
    """The convolution of transposed operands, transposed back."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    numbers = features_last(len(lhs_spec))
    lhs, rhs = transpose(lhs, _order(lhs_spec, numbers.lhs_spec)), transpose(rhs, _order(rhs_spec, numbers.rhs_spec))
    out = bind(lhs, rhs, dimension_numbers=numbers, **params)
    return transpose(out, _order(numbers.out_spec, out_spec))


def _order(source: Any, target: Any) -> tuple[int, ...]:
    """The permutation that moves the dimensions listed in `source` to the places listed in `target`."""
    return tuple(source[i] for i in np.argsort(target))
