"""The kernel's gradient of a grouped convolution: for each offset in the kernel, a sum of products of whole arrays.

It is a convolution of the operand with a kernel as large as an image, grouped by batch (`conv_transposes.py`), which
XLA's CPU backend computes in a loop over scalars. Here the sums are taken side by side in one loop, which reads an
image once for all of them.

Milliseconds, XLA's convolution / this: depthwise 3×3 of 8×96×56×56 39 / 3.6, 7×7 136 / 20; 3×3 with stride 2 of
8×96×112×112 54 / 5.8; 32 groups of 4 features, 3×3, of 8×128×28×28 2400 / 3.6. ONNX has no such operator.
"""

from __future__ import annotations

import math
from typing import Any

from xlamini.core import Shape, ShapedArray, aval_of, literal
from xlamini.primitives.base.elementwise import mul
from xlamini.primitives.forms.cpu.windows.joint_sums import joint_sums
from xlamini.primitives.forms.cpu.windows.sum_dtype import is_plain
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.shape import broadcast_in_dim, expand_dims, reshape, sum_over, transpose
from xlamini.primitives.windows.conv_numbers import ConvDimensionNumbers, placed, result_space, space_of
from xlamini.primitives.windows.geometry import Pads, dilated
from xlamini.primitives.windows.grouping import split_off
from xlamini.primitives.windows.views import each_view

_MOST_OFFSETS, _MOST_PAIRS = 128, 64


def fits(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    dimension_numbers: ConvDimensionNumbers,
    batch_group_count: int,
    **params: Any,
) -> bool:
    """Batch groups, of few pairs of an operand's and a kernel's feature."""
    lhs_spec, rhs_spec, _ = dimension_numbers
    if batch_group_count == 1 or not is_plain(lhs, **params):
        return False
    pairs = lhs.shape[lhs_spec[0]] * rhs.shape[rhs_spec[0]] // batch_group_count**2
    offsets = math.prod(result_space(lhs, rhs, dimension_numbers=dimension_numbers, **params))
    return pairs <= _MOST_PAIRS and offsets <= _MOST_OFFSETS


def joint_products(
    lhs: Any, rhs: Any, *, dimension_numbers: ConvDimensionNumbers, batch_group_count: int, **params: Any
) -> Any:
    """The convolution. Arrays have the operand's order of dimensions, with its batch split into groups and features.

    The result has a place for each offset that an image, the kernel of this convolution, takes.
    """
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    offsets = result_space(aval_of(lhs), aval_of(rhs), dimension_numbers=dimension_numbers, **params)
    views = _views(lhs, aval_of(rhs), offsets, dimension_numbers, **params)
    batch, groups = lhs_spec[0], batch_group_count
    y = split_off(transpose(rhs, [rhs_spec[lhs_spec.index(d)] for d in range(len(lhs_spec))]), batch, groups)
    sums = _sums_of_products([split_off(view, batch, groups) for view in views], y, *lhs_spec[:2])
    # from (offsets, groups, input features, output features)
    _, _, given, outputs = aval_of(sums).shape
    space = sorted(range(len(offsets)), key=lambda i: lhs_spec[2 + i])
    shape = (*(offsets[i] for i in space), given, groups * outputs)
    order = (*(out_spec[2 + i] for i in space), out_spec[0], out_spec[1])
    return transpose(reshape(transpose(sums, (0, 2, 1, 3)), shape), [order.index(d) for d in range(len(order))])


# --- helpers


def _views(
    lhs: Any,
    rhs: ShapedArray,
    offsets: Shape,
    numbers: ConvDimensionNumbers,
    *,
    window_strides: Shape,
    padding: Pads,
    lhs_dilation: Shape,
    rhs_dilation: Shape,
    **_: Any,
) -> list[Any]:
    """The operand at each offset, as large as the image: the offsets are a window, which slides over the image."""
    spec = numbers.lhs_spec
    sizes = dilated(space_of(aval_of(lhs), spec), lhs_dilation)
    image, reach = dilated(space_of(rhs, numbers.rhs_spec), rhs_dilation), dilated(offsets, window_strides)
    spread = zip(padding, sizes, image, reach, strict=True)
    around = [(low, k + n - 1 - low - size) for (low, _), size, k, n in spread]
    space = {
        "window_dimensions": offsets,
        "window_strides": rhs_dilation,
        "base_dilation": lhs_dilation,
        "window_dilation": window_strides,
    }
    whole = {name: placed((1, 1, *values), spec) for name, values in space.items()}
    pads = placed(((0, 0), (0, 0), *around), spec)
    return each_view(lhs, literal(0, aval_of(lhs).dtype), padding=pads, **whole)


def _sums_of_products(views: list[Any], y: Any, batch: int, contracted: int) -> Any:
    """An array (offsets, groups, input features, output features): the products summed over space, then over images.

    The second sum is one operation, for which programs of several devices communicate once.
    """
    before, after = aval_of(views[0]).shape, aval_of(y).shape
    shape = (*before[: batch + 2], after[batch + 1], *before[batch + 2 :])
    of_inputs, of_outputs = ([d for d in range(len(shape)) if d != batch + other] for other in (2, 1))
    factor = broadcast_in_dim(y, shape, of_outputs)
    products = [mul(broadcast_in_dim(view, shape, of_inputs), factor) for view in views]
    images = contracted + 2 * (contracted > batch)
    space = [d for d in range(len(shape)) if d != images and not batch <= d < batch + 3]
    whole = concatenate([expand_dims(total, (0,)) for total in joint_sums(products, space)], 0)
    return sum_over(whole, (1 if images < batch else 4,))
