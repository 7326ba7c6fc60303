"""The kernel's gradient of a convolution by a kernel no larger than its stride, as a matrix product.

It is a convolution with an image as the kernel, dilated by the stride, of as few places as the kernel had elements
(`conv_transposes.py`): for each of them a product over all tiles and images. If images come first in memory and their
products are small, they are batches of a product, which are added; otherwise all are contracted at once.

Milliseconds, XLA's convolution / this: 1×1 of 8×64×56×56 to 256 features 26 / 5.9, with features last 24 / 6.2; 1×1
with stride 2 of 8×256×56×56 to 512 82 / 15; 2×2 with stride 2 of 8×96×56×56 to 192 15 / 8.6. ONNX has no such operator.
"""

from __future__ import annotations

import math
from typing import Any

from xlamini.core import Shape, ShapedArray, aval_of
from xlamini.primitives.forms.cpu.windows.sum_dtype import is_one_plain_group
from xlamini.primitives.forms.cpu.windows.tiles import Tiles, cut
from xlamini.primitives.products.dot_general import dot_general
from xlamini.primitives.shape.shape import reshape, sum_over, transpose
from xlamini.primitives.windows.conv_numbers import ConvDimensionNumbers, placed, result_space, space_of
from xlamini.primitives.windows.geometry import Pads


def fits(lhs: ShapedArray, rhs: ShapedArray, **params: Any) -> bool:
    """One group, and a result no larger in space than the image's dilation; more than one place in an image."""
    offsets = result_space(lhs, rhs, **params)
    apart = all(n <= hole for n, hole in zip(offsets, params["rhs_dilation"], strict=True))
    image = math.prod(space_of(rhs, params["dimension_numbers"].rhs_spec))
    unmoved = all(d == 1 for d in (*params["window_strides"], *params["lhs_dilation"]))
    return apart and image > 1 and unmoved and is_one_plain_group(lhs, **params)


def patchify_gradient(
    lhs: Any,
    rhs: Any,
    *,
    padding: Pads,
    rhs_dilation: Shape,
    dimension_numbers: ConvDimensionNumbers,
    precision: Any,
    **params: Any,
) -> Any:
    """The convolution. Of the operand's features, which are the images, and of places the sum is taken."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    more = {"padding": padding, "rhs_dilation": rhs_dilation, "dimension_numbers": dimension_numbers}
    offsets = result_space(aval_of(lhs), aval_of(rhs), **more, **params)
    counts = space_of(aval_of(rhs), rhs_spec)
    tiles = cut(lhs, lhs_spec, counts, rhs_dilation, offsets, [low for low, _ in padding])
    shape = (aval_of(lhs).shape[lhs_spec[0]], *offsets, aval_of(rhs).shape[rhs_spec[0]])
    images_first = lhs_spec[:2] == rhs_spec[:2] == (1, 0)
    products_of_images = aval_of(lhs).shape[lhs_spec[1]] * math.prod(shape)
    is_small = products_of_images <= aval_of(lhs).size + aval_of(rhs).size
    product = (_of_images if images_first and is_small else _at_once)(tiles, rhs, rhs_spec, precision)
    space = range(1, 1 + len(offsets))
    return transpose(reshape(product, shape), placed((0, 1 + len(offsets), *space), out_spec))


# --- helpers


def _of_images(tiles: Tiles, rhs: Any, spec: Shape, precision: Any) -> Any:
    """(input features and offsets, output features), for each image, then added."""
    x = tiles.moved(tiles.features, tiles.batch, *tiles.inside, *tiles.which)
    y = transpose(rhs, (spec[1], spec[0], *spec[2:]))
    count, outputs, *places = aval_of(y).shape
    y = reshape(y, (count, outputs, math.prod(places)))
    x = reshape(x, (count, aval_of(x).size // (count * math.prod(places)), math.prod(places)))
    return sum_over(dot_general(x, y, (((2,), (2,)), ((0,), (0,))), precision), (0,))


def _at_once(tiles: Tiles, rhs: Any, spec: Shape, precision: Any) -> Any:
    """(input features and offsets, output features)."""
    x = tiles.moved(tiles.features, *tiles.which, tiles.batch, *tiles.inside)
    y = transpose(rhs, (*spec[1:], spec[0]))
    outputs = aval_of(y).shape[-1]
    rows = aval_of(y).size // outputs
    x, y = reshape(x, (rows, aval_of(x).size // rows)), reshape(y, (rows, outputs))
    return dot_general(x, y, (((0,), (0,)), ((), ())), precision)
