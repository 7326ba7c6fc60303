"""Tensor contraction over labeled axes: axes of equal labels are matched, and labels no longer needed are summed.

This is the core of einsum and matmul. Each product becomes one `dot_general`, with the operands in the order that
saves a transpose, or a plain multiplication where nothing is summed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import ShapeError, aval_of, check_user_dtype, result_type
from xlamini.core.sizes.expression import is_symbolic_shape
from xlamini.numpy.indexing.take import take
from xlamini.primitives import (
    broadcast_in_dim,
    convert,
    moveaxis,
    mul,
    reduce_or_p,
    reshape,
    squeeze,
    sum_over,
    transpose,
)
from xlamini.primitives.base.precision import CanonicalPrecision, canonical_precision
from xlamini.primitives.base.promotion import accumulator
from xlamini.primitives.products.dot_general import dot_general
from xlamini.primitives.shape.iota import iota
from xlamini.primitives.shape.slice import slice

Labels = tuple[Hashable, ...]

_INDEX = np.dtype(np.int32)


class Labelled(NamedTuple):
    """An array and a label for each of its axes, all different."""

    array: Any
    labels: Labels


class Arithmetic(NamedTuple):
    """The arithmetic of products: their precision, their dtype, the result's, and the function that computes them."""

    precision: CanonicalPrecision
    dtype: Any
    out: Any
    dot: Callable[..., Any] = dot_general


def arithmetic(name: str, operands: Sequence[Any], precision: Any, dtype: Any) -> tuple[Arithmetic, bool]:
    """The arithmetic for these operands, and whether the result is weakly typed.

    Where a real dtype is asked of complex operands, the products are complex, and the result is their real part.
    """
    known = canonical_precision(precision, name)
    promoted, weak = result_type(*operands, return_weak_type_flag=True)
    if dtype is None:
        return Arithmetic(known, promoted, promoted), weak
    wanted = check_user_dtype(dtype, name)
    return Arithmetic(known, promoted if promoted.kind == "c" != wanted.kind else wanted, wanted), False


def labelled(name: str, x: Any, labels: Sequence[Hashable]) -> Labelled:
    """An array with labels; a repeated label takes the diagonal along both axes."""
    shape = aval_of(x).shape
    for i, label in enumerate(labels):
        if label in labels[:i]:
            first = labels.index(label)
            if shape[first] != shape[i]:
                raise ShapeError(
                    f"{name}: label '{label}' stands for axes of sizes {shape[first]} and {shape[i]} of one operand of "
                    f"shape {shape}; a diagonal needs equal sizes"
                )
            kept = [*labels[:i], *labels[i + 1 :]]
            return labelled(name, _diagonal(x, first, i), kept)
    return Labelled(x, tuple(labels))


def without_ones(operands: Sequence[Labelled], sizes: dict[Hashable, int]) -> list[Labelled]:
    """The operands without axes of size 1 that broadcast to a larger size."""
    return [_without_ones(x, sizes) for x in operands]


def summed(x: Labelled, kept: Collection[Hashable], how: Arithmetic) -> Labelled:
    """The array summed over the axes whose labels are not in `kept`."""
    axes = [i for i, label in enumerate(x.labels) if label not in kept]
    if not axes:
        return x
    labels = tuple(label for label in x.labels if label in kept)
    if aval_of(x.array).dtype == np.bool_:
        return Labelled(reduce_or_p.bind(x.array, axes=tuple(axes)), labels)
    total = sum_over(convert(x.array, accumulator(how.dtype)), axes)
    return Labelled(convert(total, how.dtype), labels)


def product(x: Labelled, y: Labelled, kept: Labels, how: Arithmetic) -> Labelled:
    """The product of two arrays, summed over the labels not in `kept`; in the order of `kept` where that is free."""
    x = summed(x, {*kept, *y.labels}, how)
    y = summed(y, {*kept, *x.labels}, how)
    shared = [label for label in x.labels if label in y.labels]
    contracted = [label for label in shared if label not in kept]
    if not contracted:
        if set(x.labels) <= set(y.labels):
            x, y = y, x
        if set(y.labels) <= set(x.labels):
            return Labelled(_multiplied(x, y, how), x.labels)
    batch = sorted((label for label in shared if label in kept), key=kept.index)
    if kept and (*batch, *_free(x, shared), *_free(y, shared))[-1:] != kept[-1:] == _free(x, shared)[-1:]:
        x, y = y, x  # A transpose that leaves the last axis in its place costs a TPU less, or nothing.
    return Labelled(_dot(x, y, contracted, batch, how), (*batch, *_free(x, shared), *_free(y, shared)))


def ordered(x: Labelled, labels: Labels) -> Any:
    """The array with its axes in this order."""
    return transpose(x.array, [x.labels.index(label) for label in labels])


def _free(x: Labelled, shared: Collection[Hashable]) -> Labels:
    return tuple(label for label in x.labels if label not in shared)


def _dot(x: Labelled, y: Labelled, contracted: Labels | list, batch: Labels | list, how: Arithmetic) -> Any:
    numbers = tuple(
        tuple(tuple(operand.labels.index(label) for label in labels) for operand in (x, y))
        for labels in (contracted, batch)
    )
    return how.dot(x.array, y.array, numbers, precision=how.precision, preferred_element_type=how.dtype)


def _multiplied(x: Labelled, y: Labelled, how: Arithmetic) -> Any:
    """x * y where every label of y is one of x."""
    left, right = convert(x.array, how.dtype), convert(y.array, how.dtype)
    if not y.labels:
        return mul(left, right)
    order = sorted(y.labels, key=x.labels.index)
    right = transpose(right, [y.labels.index(label) for label in order])
    places = [x.labels.index(label) for label in order]
    return mul(left, broadcast_in_dim(right, aval_of(left).shape, places))


def _without_ones(x: Labelled, sizes: dict[Hashable, int]) -> Labelled:
    shape = aval_of(x.array).shape
    ones = [i for i, label in enumerate(x.labels) if shape[i] == 1 and sizes[label] != 1]
    kept = tuple(label for i, label in enumerate(x.labels) if i not in ones)
    return Labelled(squeeze(x.array, ones), kept) if ones else x


def _diagonal(x: Any, first: int, second: int) -> Any:
    """The diagonal along two axes of one size, in place of the first: every n+1-th element of the flattened matrix."""
    x = moveaxis(x, second, first + 1)
    shape = aval_of(x).shape
    n = shape[first]
    flat = reshape(x, (*shape[:first], n * n, *shape[first + 2 :]))
    if is_symbolic_shape((n,)):
        return take(flat, iota(_INDEX, n) * (n + 1), first, mode="clip")
    rank = len(shape) - 1
    strides = [n + 1 if d == first else 1 for d in range(rank)]
    return slice(flat, [0] * rank, aval_of(flat).shape, strides)
