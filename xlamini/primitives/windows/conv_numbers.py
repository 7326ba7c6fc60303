"""The dimension numbers of a convolution's operands and result, and the shapes that follow.

A specification lists dimensions in the order batch, features, space (of the kernel: output features, input features,
space); as a string it has a letter for each dimension.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from xlamini.core import Shape, ShapedArray, ShapeError
from xlamini.core.sizes.expression import max_size
from xlamini.primitives.windows.geometry import Pads, as_pads, window_counts

T = TypeVar("T")

OF_SPACE: dict[str, Any] = {"window_strides": 1, "padding": (0, 0), "lhs_dilation": 1, "rhs_dilation": 1}
"""The params with an item for each dimension of space, and the item for one that is not padded, strided or dilated."""


class ConvDimensionNumbers(NamedTuple):
    """The dimensions of a convolution in the order (batch, features, space…), of the kernel (output, input, space…).

    >>> conv_dimension_numbers((1, 5, 5, 3), (2, 2, 3, 4), ("NHWC", "HWIO", "NHWC"))
    ConvDimensionNumbers(lhs_spec=(0, 3, 1, 2), rhs_spec=(3, 2, 0, 1), out_spec=(0, 3, 1, 2))
    """

    lhs_spec: Shape
    rhs_spec: Shape
    out_spec: Shape


ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None
"""What `conv_general_dilated` takes as `dimension_numbers`: three strings, ConvDimensionNumbers, or None for NCHW.

>>> numbers: ConvGeneralDilatedDimensionNumbers = ("NHWC", "HWIO", "NHWC")
>>> image, kernel = jnp.ones((1, 4, 4, 3)), jnp.ones((2, 2, 3, 5))
>>> lax.conv_general_dilated(image, kernel, (1, 1), "VALID", dimension_numbers=numbers).shape
(1, 3, 3, 5)
"""


def conv_dimension_numbers(
    lhs_shape: Sequence[int], rhs_shape: Sequence[int], dimension_numbers: ConvGeneralDilatedDimensionNumbers
) -> ConvDimensionNumbers:
    """A user's `dimension_numbers` as ConvDimensionNumbers: None (NCHW, OIHW, NCHW) or three strings.

    The strings name batch N, features C, in the kernel output O and input I, and spatial dimensions by any letters.
    TypeError or ValueError for ranks or letters that do not fit.

    >>> conv_dimension_numbers((1, 3, 5), (4, 3, 2), None).lhs_spec
    (0, 1, 2)
    """
    return numbers_for("conv_dimension_numbers", lhs_shape, rhs_shape, dimension_numbers)


def conv_general_permutations(dimension_numbers: Sequence[str]) -> list[list[int]]:
    """The dimension permutations that three strings specify: (lhs, rhs, out), spatial ones in the kernel's order.

    >>> conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    [[0, 3, 1, 2], [3, 2, 0, 1], [0, 3, 1, 2]]
    """
    lhs, rhs, out = dimension_numbers
    _check_letters("conv_general_permutations", lhs, rhs, out)
    space = [letter for letter in rhs if letter not in "OI"]
    return [
        [*map(spec.index, first), *map(spec.index, space)] for spec, first in ((lhs, "NC"), (rhs, "OI"), (out, "NC"))
    ]


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: Any,
    batch_group_count: int = 1,
) -> Shape:
    """The result's shape for operands in the order (N, C, space…) and (O, I, space…).

    >>> conv_shape_tuple((1, 3, 5), (4, 3, 2), (1,), "VALID")
    (1, 4, 4)
    """
    padding = as_pads("conv_shape_tuple", pads, lhs_shape[2:], rhs_shape[2:], strides)
    if len(padding) != len(lhs_shape) - 2:
        raise ShapeError(f"conv_shape_tuple: {len(lhs_shape) - 2} pairs of padding are needed, got {padding}")
    if batch_group_count > 1 and lhs_shape[0] % batch_group_count:
        raise ShapeError(
            f"conv_shape_tuple: batch_group_count {batch_group_count} must divide the batch size {lhs_shape[0]}"
        )
    space = window_counts(lhs_shape[2:], rhs_shape[2:], strides, padding)
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *space)


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Sequence[str],
) -> Shape:
    """The shape of a convolution's result, dimensions named by three strings.

    >>> conv_general_shape_tuple((1, 5, 3), (2, 3, 4), (1,), "VALID", ("NWC", "WIO", "NWC"))
    (1, 4, 4)
    """
    lhs_perm, rhs_perm, out_perm = conv_general_permutations(dimension_numbers)
    lhs, rhs = [lhs_shape[d] for d in lhs_perm], [rhs_shape[d] for d in rhs_perm]
    return placed(conv_shape_tuple(lhs, rhs, window_strides, padding), out_perm)


def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Any,
    dimension_numbers: Sequence[str],
) -> Shape:
    """The shape of a transposed convolution's result, dimensions named by three strings.

    >>> conv_transpose_shape_tuple((1, 4, 3), (2, 3, 4), (2,), "VALID", ("NWC", "WIO", "NWC"))
    (1, 8, 4)
    """
    lhs_perm, rhs_perm, out_perm = conv_general_permutations(dimension_numbers)
    lhs, rhs = [lhs_shape[d] for d in lhs_perm], [rhs_shape[d] for d in rhs_perm]
    if isinstance(padding, str):
        padding = [transpose_pads(k, s, padding) for k, s in zip(rhs[2:], window_strides, strict=True)]
    space = [
        s * (n - 1) + 1 - k + 1 + low + high
        for n, k, s, (low, high) in zip(lhs[2:], rhs[2:], window_strides, padding, strict=True)
    ]
    return placed((lhs[0], rhs[0], *space), out_perm)


def transpose_pads(window: int, stride: int, padding: str) -> tuple[int, int]:
    """The padding with which a convolution of the operand, dilated by `stride`, has the size that undoes `padding`."""
    kind = padding.upper()
    if kind == "SAME":
        total = window + stride - 2
        before = window - 1 if stride > window - 1 else -(-total // 2)
    elif kind == "VALID":
        total = window + stride - 2 + max_size(window - stride, 0)
        before = window - 1
    else:
        raise ValueError(f"conv_transpose: padding must be 'SAME', 'VALID' or pairs (before, after), got {padding!r}")
    return before, total - before


# --- helpers


def numbers_for(name: str, lhs_shape: Sequence[int], rhs_shape: Sequence[int], given: Any) -> ConvDimensionNumbers:
    """`conv_dimension_numbers`, with errors that name another function."""
    if isinstance(given, ConvDimensionNumbers):
        return given
    if len(lhs_shape) != len(rhs_shape):
        raise ShapeError(
            f"{name}: lhs and rhs must have one rank, got shapes {tuple(lhs_shape)} and {tuple(rhs_shape)}; "
            "both have two dimensions besides the spatial ones"
        )
    rank = len(lhs_shape)
    if given is None:
        same = tuple(range(rank))
        return ConvDimensionNumbers(same, same, same)
    if not isinstance(given, list | tuple) or len(given) != 3 or not all(isinstance(spec, str) for spec in given):
        raise TypeError(
            f"{name}: dimension_numbers must be None, three strings such as ('NHWC', 'HWIO', 'NHWC'), or "
            f"ConvDimensionNumbers, got {given!r}"
        )
    if any(len(spec) != rank for spec in given):
        raise ShapeError(f"{name}: dimension_numbers {tuple(given)} must name the {rank} dimensions of the operands")
    _check_letters(name, *given)
    return ConvDimensionNumbers(*map(tuple, conv_general_permutations(given)))


def space_of(aval: ShapedArray, spec: Shape) -> Shape:
    """The sizes of an array's spatial dimensions."""
    return tuple(aval.shape[d] for d in spec[2:])


def result_space(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    window_strides: Shape,
    padding: Pads,
    lhs_dilation: Shape,
    rhs_dilation: Shape,
    dimension_numbers: ConvDimensionNumbers,
    **_: Any,
) -> Shape:
    """The sizes of the spatial dimensions of a convolution's result, from its operands and params."""
    sizes, window = space_of(lhs, dimension_numbers[0]), space_of(rhs, dimension_numbers[1])
    return window_counts(sizes, window, window_strides, padding, lhs_dilation, rhs_dilation)


def features_last(rank: int) -> ConvDimensionNumbers:
    """The numbers of arrays of this rank in the order NHWC, HWIO, NHWC."""
    images = (0, rank - 1, *range(1, rank - 1))
    return ConvDimensionNumbers(images, (rank - 1, rank - 2, *range(rank - 2)), images)


def placed(values: Sequence[T], spec: Sequence[int]) -> tuple[T, ...]:
    """The tuple in which entry `spec[i]` is `values[i]`, such as a shape by sizes of batch, features, space."""
    return tuple(values[spec.index(d)] for d in range(len(spec)))


def _check_letters(name: str, lhs: str, rhs: str, out: str) -> None:
    for what, spec, first in (("lhs", lhs, "NC"), ("rhs", rhs, "OI"), ("out", out, "NC")):
        if any(spec.count(letter) != 1 for letter in first) or len(set(spec)) != len(spec):
            raise TypeError(
                f"{name}: the {what} string {spec!r} must have {first[0]} and {first[1]} once, and each letter once"
            )
    if not set(lhs) - {*"NC"} == set(rhs) - {*"OI"} == set(out) - {*"NC"}:
        raise ValueError(f"{name}: the strings {lhs!r}, {rhs!r}, {out!r} must name the same spatial dimensions")
