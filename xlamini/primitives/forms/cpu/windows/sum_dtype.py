"""What a formulation must not change: the dtype of the sums."""

from __future__ import annotations

from typing import Any

from xlamini.core import ShapedArray

PLAIN_FLOATS = ("float32", "float64")
"""The floats of which XLA computes sums in their own dtype."""


def is_one_plain_group(lhs: ShapedArray, **params: Any) -> bool:
    return params["feature_group_count"] == params["batch_group_count"] == 1 and is_plain(lhs, **params)


def is_plain(lhs: ShapedArray, *, preferred_element_type: Any, **_: Any) -> bool:
    """Whether products and sums have the operands' dtype.

    Of narrower floats XLA adds the products in float32.
    """
    same = preferred_element_type is None or preferred_element_type == lhs.dtype
    return lhs.dtype.name in PLAIN_FLOATS and same
