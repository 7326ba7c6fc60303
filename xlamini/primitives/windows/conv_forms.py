"""Special forms of convolution: plain, transposed, with a kernel for each place; and the windows themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import Shape, ShapeError, aval_of, check_user_dtype, literal
from xlamini.primitives.base.elementwise import like_dtypes
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.products.dot_general import dot_general
from xlamini.primitives.shape.shape import reshape, rev, transpose
from xlamini.primitives.windows.conv_numbers import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    numbers_for,
    transpose_pads,
)
from xlamini.primitives.windows.convolution import conv_general_dilated
from xlamini.primitives.windows.geometry import as_numbers, as_pads, check_numbers, dilated
from xlamini.primitives.windows.views import window_views
from xlamini.runtime import Array

_CHANNELS_LAST = {
    3: ("NHC", "HIO", "NHC"),
    4: ("NHWC", "HWIO", "NHWC"),
    5: ("NHWDC", "HWDIO", "NHWDC"),
}


def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """`conv_general_dilated` without dilation, of (N, C, space…) with (O, C, space…), which gives (N, O, space…).

    >>> conv(xlamini.numpy.ones((1, 1, 4)), xlamini.numpy.ones((2, 1, 3)), (1,), "VALID").shape
    (1, 2, 2)
    """
    return conv_general_dilated(
        lhs, rhs, window_strides, padding, precision=precision, preferred_element_type=preferred_element_type
    )


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """`conv_general_dilated` with its dimensions in the order (N, C, space…) and (O, I, space…).

    >>> x, kernel = xlamini.numpy.ones((1, 1, 4)), xlamini.numpy.ones((1, 1, 2))
    >>> conv_with_general_padding(x, kernel, (1,), [(0, 1)], None, (2,)).shape
    (1, 1, 3)
    """
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_transpose(
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Array:
    """A convolution of `lhs` with `strides - 1` holes between its elements, which enlarges as a convolution shrinks.

    `padding` by name is that of the convolution whose size it undoes; pairs are padding of the dilated `lhs`, or, with
    `use_consistent_padding`, of that convolution too. Dimensions are channels last by default (NHWC, HWIO, NHWC, also
    with one or three spatial ones). With `transpose_kernel` the kernel is reversed in space and its features
    exchanged, which makes the result the cotangent of a convolution's operand.

    >>> x, kernel = xlamini.numpy.ones((1, 3, 1)), xlamini.numpy.ones((2, 1, 1))
    >>> conv_transpose(x, kernel, (2,), "SAME").shape
    (1, 6, 1)
    """
    name = "conv_transpose"
    lhs, rhs = like_dtypes((lhs, rhs))
    rank = aval_of(lhs).ndim
    if dimension_numbers is None:
        if rank not in _CHANNELS_LAST:
            raise ShapeError(
                f"{name}: lhs must have rank 3, 4 or 5, got {aval_of(lhs).str_short(False)}; give dimension_numbers "
                "for other ranks"
            )
        dimension_numbers = _CHANNELS_LAST[rank]
    numbers = numbers_for(name, aval_of(lhs).shape, aval_of(rhs).shape, dimension_numbers)
    space = numbers.rhs_spec[2:]
    holes = as_numbers(name, "rhs_dilation", rhs_dilation, 1, len(space))
    steps = as_numbers(name, "strides", strides, 1, len(space))
    check_numbers(name, len(space), strides=steps, rhs_dilation=holes)
    window = dilated([aval_of(rhs).shape[d] for d in space], holes)
    around = _transposed_padding(name, padding, window, steps, use_consistent_padding)
    if transpose_kernel:
        rhs = _turned(rhs, numbers)
    return conv_general_dilated(
        lhs, rhs, (1,) * len(space), around, steps, holes, numbers, 1, 1, precision, preferred_element_type
    )


def conv_general_dilated_patches(
    lhs: Any,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Array:
    """The windows that a convolution sees, each flattened into the features of the result.

    A window is flattened in the order of input features, then the spatial dimensions as the kernel has them. The
    elements are copied, so `precision` has nothing to say. Arguments and errors are those of `conv_general_dilated`.

    >>> conv_general_dilated_patches(xlamini.numpy.arange(4.0).reshape(1, 1, 4), (2,), (1,), "VALID")
    Array([[[0., 1., 2.],
            [1., 2., 3.]]], dtype=float32)
    """
    name = "conv_general_dilated_patches"
    x = lhs if preferred_element_type is None else convert(lhs, check_user_dtype(preferred_element_type, name))
    shape = aval_of(x).shape
    numbers = numbers_for(name, shape, (1,) * (len(filter_shape) + 2), dimension_numbers)
    given = {"filter_shape": filter_shape, "window_strides": window_strides}
    dilations = {"lhs_dilation": lhs_dilation, "rhs_dilation": rhs_dilation}
    windows = _windows_of(name, [shape[d] for d in numbers.lhs_spec[2:]], padding, {**given, **dilations})
    views = window_views(transpose(x, numbers.lhs_spec), literal(0, aval_of(x).dtype), *windows)
    return _flattened(views, numbers)


def conv_general_dilated_local(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: Any = None,
) -> Array:
    """A convolution with a kernel of its own at each place of the result, as in a locally connected layer.

    The spatial dimensions of `rhs` are those of the result; its input features are a whole window, flattened as
    `conv_general_dilated_patches` does, of shape `filter_shape`.

    >>> x, kernels = xlamini.numpy.ones((1, 1, 4)), xlamini.numpy.ones((2, 3, 2))
    >>> conv_general_dilated_local(x, kernels, (1,), "VALID", (3,)).shape
    (1, 2, 2)
    """
    numbers = numbers_for(
        "conv_general_dilated_local", aval_of(lhs).shape, aval_of(rhs).shape, dimension_numbers
    )
    patches = conv_general_dilated_patches(
        lhs, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation, numbers
    )
    _, rhs_spec, out_spec = numbers
    pairs = (((out_spec[1],), (rhs_spec[1],)), (out_spec[2:], rhs_spec[2:]))
    windows, kernels = like_dtypes((patches, rhs))
    product = dot_general(windows, kernels, pairs, precision)
    where = (*out_spec[2:], out_spec[0], out_spec[1])
    return transpose(product, np.argsort(where).tolist())


# --- helpers


def _transposed_padding(
    name: str, padding: Any, window: Shape, strides: Shape, consistent: bool
) -> list[tuple[int, int]]:
    if isinstance(padding, str):
        return [transpose_pads(k, s, padding) for k, s in zip(window, strides, strict=True)]
    around = as_pads(name, padding, window, window, strides)
    if len(around) != len(window):
        raise ShapeError(f"{name}: padding must have {len(window)} pairs, one for each dimension, got {around}")
    if not consistent:
        return list(around)
    return [(k - 1 - low, k - 1 - high) for k, (low, high) in zip(window, around, strict=True)]


def _windows_of(name: str, sizes: Sequence[int], padding: Any, arguments: dict[str, Any]) -> list[Any]:
    """Windows, strides, padding and dilations, of one element in the first two dimensions."""
    count = len(sizes)
    numbers = {what: as_numbers(name, what, values, 1, count) for what, values in arguments.items()}
    check_numbers(name, count, **numbers)
    window, strides, base, holes = numbers.values()
    around = as_pads(name, padding, sizes, dilated(window, holes), strides)
    if len(around) != count:
        raise ShapeError(f"{name}: padding must have {count} pairs, one for each spatial dimension, got {around}")
    none = ((0, 0), (0, 0))
    return [(1, 1, *window), (1, 1, *strides), (*none, *around), (1, 1, *base), (1, 1, *holes)]


def _turned(rhs: Any, numbers: ConvDimensionNumbers) -> Any:
    out, given, *space = numbers.rhs_spec
    order = list(range(len(numbers.rhs_spec)))
    order[out], order[given] = given, out
    return transpose(rev(rhs, space) if space else rhs, order)


def _flattened(views: Any, numbers: ConvDimensionNumbers) -> Any:
    """(window, N, C, space…) as (N, C * window, space…), in the order of the result."""
    window, batch, features, *space = aval_of(views).shape
    order = (1, 2, 0, *range(3, 3 + len(space)))
    flat = reshape(transpose(views, order), (batch, features * window, *space))
    return transpose(flat, np.argsort(numbers.out_spec).tolist())
