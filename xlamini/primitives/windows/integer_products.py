"""A convolution of integers on a GPU, where cuDNN has none: the windows, multiplied by the kernel as matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini.core import Params, Shape, aval_of, literal
from xlamini.primitives.forms.cpu.windows.group_by_group import group_by_group
from xlamini.primitives.products.dot_general import dot_general
from xlamini.primitives.shape.shape import reshape, transpose
from xlamini.primitives.windows.grouping import split_off
from xlamini.primitives.windows.views import window_views


def windows_times_kernel(bind: Callable[..., Any], params: Params, lhs: Any, rhs: Any) -> Any:
    """The convolution; `bind` applies it to groups of the batch, and `params` are its own."""
    if params["batch_group_count"] > 1:
        return group_by_group(bind, lhs, rhs, **params)
    lhs_spec, rhs_spec, out_spec = params["dimension_numbers"]
    kernel = transpose(rhs, rhs_spec)  # output features, input features, window
    outputs, inputs, *window = aval_of(kernel).shape
    groups = params["feature_group_count"]
    views = split_off(_views(transpose(lhs, lhs_spec), tuple(window), params), 2, groups)
    kernels = reshape(kernel, (groups, outputs // groups, inputs, int(np.prod(window))))
    pairs = (((0, 3), (3, 2)), ((2,), (0,)))  # offsets and the features of a group; groups
    product = dot_general(views, kernels, pairs, params["precision"], params["preferred_element_type"])
    return transpose(_joined(product), np.argsort(out_spec).tolist())


# --- helpers


def _views(x: Any, window: Shape, params: Params) -> Any:
    """The elements of all windows: offset in the window, batch, features, space."""
    ones = (1, 1)
    return window_views(
        x,
        literal(0, aval_of(x).dtype),
        (*ones, *window),
        (*ones, *params["window_strides"]),
        ((0, 0), (0, 0), *params["padding"]),
        (*ones, *params["lhs_dilation"]),
        (*ones, *params["rhs_dilation"]),
    )


def _joined(product: Any) -> Any:
    """(group, batch, space, feature of the group) as (batch, feature, space)."""
    last = aval_of(product).ndim - 1
    moved = transpose(product, (1, 0, last, *range(2, last)))
    batch, groups, features, *space = aval_of(moved).shape
    return reshape(moved, (batch, groups * features, *space))
