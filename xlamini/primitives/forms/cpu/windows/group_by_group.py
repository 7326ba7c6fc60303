"""A convolution grouped by batch, one group after another, joined: so are the gradients of grouped kernels.

XLA's CPU backend computes those in a loop over scalars. Where a group has few features, `joint_products.py` is faster.

Milliseconds of the processor's time, XLA's convolution / this: the gradient of a kernel for 4 groups of 16 features,
3×3, of 8×64×28×28 443 / 9.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core import ShapedArray, aval_of
from xlamini.primitives.forms.cpu.windows.sum_dtype import PLAIN_FLOATS
from xlamini.primitives.shape.concatenate import concatenate, split
from xlamini.primitives.windows.conv_numbers import ConvDimensionNumbers

_MOST_GROUPS = 64
"""Each is an operation more to compile."""


def fits(lhs: ShapedArray, rhs: ShapedArray, *, batch_group_count: int, **_: Any) -> bool:
    """A few groups."""
    return 1 < batch_group_count <= _MOST_GROUPS and lhs.dtype.name in PLAIN_FLOATS


def group_by_group(
    bind: Callable[..., Any],
    lhs: Any,
    rhs: Any,
    *,
    dimension_numbers: ConvDimensionNumbers,
    batch_group_count: int,
    **params: Any,
) -> Any:
    """The convolution: a group of images with its part of the kernel gives a part of the result's features."""
    operands = _parts(lhs, dimension_numbers.lhs_spec[0], batch_group_count)
    kernels = _parts(rhs, dimension_numbers.rhs_spec[0], batch_group_count)
    common = {**params, "dimension_numbers": dimension_numbers, "batch_group_count": 1}
    parts = [bind(*pair, **common) for pair in zip(operands, kernels, strict=True)]
    return concatenate(parts, dimension_numbers.out_spec[1])


# --- helpers


def _parts(x: Any, dim: int, count: int) -> list[Any]:
    return split(x, [aval_of(x).shape[dim] // count] * count, dim)
