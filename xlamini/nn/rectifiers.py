"""The operations behind `relu` and `relu6`: maxima, with a slope of 0 where they are flat, at the ends too, and at NaN.

A selection would give the same numbers, but compilers fuse a maximum with 0 into the product or convolution before it.
"""
from __future__ import annotations

from typing import Any

from xlamini.primitives import bitwise_and, max, min, where
from xlamini.primitives.base import operators
from xlamini.transforms.custom.custom_jvp import custom_jvp


@custom_jvp
def relu(x: Any) -> Any:
    """`max(x, 0)`."""
    return max(x, 0)


@custom_jvp
def relu6(x: Any) -> Any:
    """`min(max(x, 0), 6)`."""
    return min(max(x, 0), 6)


relu.defjvps(lambda slope, out, x: where(operators.greater(x, 0), slope, 0))
relu6.defjvps(
    lambda slope, out, x: where(bitwise_and(operators.greater(x, 0), operators.less(x, 6)), slope, 0)
)
