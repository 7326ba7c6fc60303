"""The running results of an associative operation, in a logarithmic number of steps and linear work.

Combine neighbours in pairs, scan the half as long sequence of results (these are the results at odd places), and one
more combination each gives the even places.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import Values, aval_of
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.interleave import interleave_p
from xlamini.primitives.shape.slice import slice_in_dim

Combine = Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]


def prefix_scan(combine: Combine, elements: Values, axis: int) -> list[Any]:
    """Result i is `combine` of the elements 0 to i along `axis`; an element is a tuple of arrays of one length."""
    n = aval_of(elements[0]).shape[axis]
    if n < 2:
        return list(elements)
    cut = functools.partial(_cut, axis=axis)
    pairs = combine(cut(elements, 0, n - 1, 2), cut(elements, 1, n, 2))
    odd = prefix_scan(combine, pairs, axis)
    first = cut(elements, 0, 1)
    if n == 2:
        return [concatenate(xs, axis) for xs in zip(first, odd, strict=True)]
    later = combine(cut(odd, 0, (n - 1) // 2), cut(elements, 2, n, 2))
    even = [concatenate(xs, axis) for xs in zip(first, later, strict=True)]
    return [interleave_p.bind(x, y, axis=axis) for x, y in zip(even, odd, strict=True)]


def _cut(elements: Values, start: int, stop: int, stride: int = 1, *, axis: int) -> list[Any]:
    return [slice_in_dim(x, start, stop, stride, axis) for x in elements]
