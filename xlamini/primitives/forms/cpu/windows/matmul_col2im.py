"""Convolution to few features as a matrix product that gives the share of each tap, and sums of the shares.

A layer that ends in an image has three outputs, and so have the gradients of one that starts from an image: matrices
of so few columns are multiplied slowly, after a copy of each window. Here the taps are columns too, and the operand is
read as it is; the product has a share for each output, tap and element of the operand. A result is the sum of the
shares that reach it. If the operand is dilated, as in transposed convolutions and gradients of strided ones, results
at one place in a stride take shares of the same taps.

A loop over images keeps the shares few, or each call of the program would pay for fresh memory.

Milliseconds of the processor's time, XLA's convolution / this: the input's gradient of 7×7 with stride 2 of 8×3×224×224
to 64 features 55 / 22; 3×3 of 8×64×64×64 to 3 features 3.0 / 1.3, to 8 of 8×64×56×56 3.3 / 2.6; transposed 4×4 /2 of
64×64×32×32 to 3 12 / 5.8; 7 taps of 8×32×8192 to 1 5.2 / 0.9; 3×3×3 of 1×32×32×32×32 to 3 94 / 3.2; float64, 3×3 of
8×64×64×64 to 3 13.6 / 2.7.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Shape, ShapedArray, aval_of, literal
from xlamini.primitives.base.elementwise import add_any, mul
from xlamini.primitives.base.precision import swap
from xlamini.primitives.base.tangent_ops import zeros
from xlamini.primitives.elementwise.bitwise import bitwise_and
from xlamini.primitives.elementwise.comparison import ge, lt
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.cpu.loops.scalar_loop import place, scalar_loop
from xlamini.primitives.forms.cpu.windows.sum_dtype import is_one_plain_group
from xlamini.primitives.forms.cpu.windows.tiles import Tiles, joined
from xlamini.primitives.forms.parts import noinline
from xlamini.primitives.indexing.dynamic_slice import dynamic_slice_p
from xlamini.primitives.indexing.dynamic_update_slice import dynamic_update_slice_p
from xlamini.primitives.products.dot_general import dot_general
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.iota import iota_p
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.shape import broadcast_in_dim, expand_dims, reshape, sum_over, transpose
from xlamini.primitives.shape.slice import index_in_dim
from xlamini.primitives.windows.conv_numbers import ConvDimensionNumbers, placed, space_of
from xlamini.primitives.windows.geometry import Pads, window_counts

_MOST_TAPS, _LEAST_FEATURES = 64, 16
_SHARES = 2**16, 2**22
"""The least and the most of the images that are computed at once, unless one image has more or all have fewer."""


class _ShareLimits(NamedTuple):
    """What a convolution has at most: outputs, and shares of one image for each element of the operand."""

    outputs: int
    growth: int


_LIMITS = {1: _ShareLimits(16, 8), 2: _ShareLimits(8, 2), 3: _ShareLimits(16, 8)}
"""By the number of dimensions of space; XLA's convolution is the fastest of images."""


def fits(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    window_strides: Shape,
    lhs_dilation: Shape,
    dimension_numbers: ConvDimensionNumbers,
    **params: Any,
) -> bool:
    """One group of many features, few outputs and taps, no stride.

    An operand with its features last is read more slowly than XLA's convolution of images reads it, unless it has
    holes, and the kernel many taps.
    """
    lhs_spec, rhs_spec, _ = dimension_numbers
    outputs, given, *window = (rhs.shape[d] for d in rhs_spec)
    limits = _LIMITS.get(len(window))
    if limits is None or not is_one_plain_group(lhs, **params) or any(s > 1 for s in window_strides):
        return False
    taps, images, places = math.prod(window), lhs.shape[lhs_spec[0]], math.prod(space_of(lhs, lhs_spec))
    few = outputs <= limits.outputs and taps <= _MOST_TAPS
    many = given >= max(_LEAST_FEATURES, 2 * outputs) and images * places >= given
    holes = any(d > 1 for d in lhs_dilation) and taps > 16
    in_order = _features_second(lhs_spec) or len(window) != 2 or holes
    return few and many and in_order and _is_cached(images, outputs * taps * places, limits.growth * lhs.size)


def matmul_col2im(
    lhs: Any, rhs: Any, *, dimension_numbers: ConvDimensionNumbers, precision: Any, **params: Any
) -> Any:
    """The convolution. Its shares have the shape (images, outputs, taps…, space…)."""
    lhs_spec, rhs_spec, out_spec = dimension_numbers
    grid = _grid(aval_of(lhs), aval_of(rhs), dimension_numbers=dimension_numbers, **params)
    outputs, given, *window = (aval_of(rhs).shape[d] for d in rhs_spec)
    matrix = reshape(transpose(rhs, (rhs_spec[0], *rhs_spec[2:], rhs_spec[1])), (aval_of(rhs).size // given, given))
    padding = reshape(sum_over(mul(matrix, literal(0, aval_of(matrix).dtype)), [1]), (outputs, *window))
    x, features = _in_rows(lhs, lhs_spec)
    shape = (outputs, *window, *grid.sizes)

    def of_images(images: Any) -> Any:
        count = aval_of(images).shape[0]
        kernels = broadcast_in_dim(matrix, (count, *aval_of(matrix).shape), (1, 2))
        product = dot_general(kernels, images, (((2,), (features,)), ((0,), (0,))), swap(precision))
        return _sums(reshape(product, (count, *shape)), padding, grid)

    count = aval_of(x).shape[0]
    out = _by_parts(of_images, x, _at_once(count, math.prod(shape)), (count, outputs, *grid.results))
    return transpose(out, placed(range(len(out_spec)), out_spec))


# --- helpers


class _TapGrid(NamedTuple):
    """Along each dimension of space: the sizes of the operand and the results, and which elements give which results.

    Result `p * stride + r`, of which there are `counts` with padding after the last, sums the share of tap k and
    element `p - moves[r][k]`. If that move is None, the tap meets only holes there.
    """

    sizes: Shape
    results: Shape
    counts: Shape
    moves: Sequence[Sequence[Sequence[int | None]]]


def _grid(
    lhs: ShapedArray,
    rhs: ShapedArray,
    *,
    dimension_numbers: ConvDimensionNumbers,
    padding: Pads,
    lhs_dilation: Shape,
    rhs_dilation: Shape,
    window_strides: Shape,
    **_: Any,
) -> _TapGrid:
    sizes, window = space_of(lhs, dimension_numbers.lhs_spec), space_of(rhs, dimension_numbers.rhs_spec)
    results = window_counts(sizes, window, window_strides, padding, lhs_dilation, rhs_dilation)
    counts = tuple(math.ceil(n / s) for n, s in zip(results, lhs_dilation, strict=True))
    lows = [low for low, _ in padding]
    moves = [_moves(*each) for each in zip(window, lows, lhs_dilation, rhs_dilation, strict=True)]
    return _TapGrid(sizes, results, counts, moves)


def _moves(taps: int, low: int, stride: int, hole: int) -> list[list[int | None]]:
    """The moves for each place in a stride. Tap k of element i is for result `i * stride + low - k * hole`."""
    ahead = [[low - k * hole - r for k in range(taps)] for r in range(stride)]
    return [[None if n % stride else n // stride for n in row] for row in ahead]


def _in_rows(lhs: Any, spec: Shape) -> tuple[Any, int]:
    """The operand as (N, C, places) or (N, places, C), as it is in memory, and which dimension C is."""
    images, features, *space = (aval_of(lhs).shape[d] for d in spec)
    if _features_second(spec):
        return reshape(transpose(lhs, spec), (images, features, math.prod(space))), 1
    return reshape(transpose(lhs, (spec[0], *spec[2:], spec[1])), (images, math.prod(space), features)), 2


def _features_second(spec: Shape) -> bool:
    """Whether an operand's features are before space in memory."""
    return spec[1] < min(spec[2:])


def _is_cached(images: int, shares: int, most: int) -> bool:
    """Whether parts of the images are neither too small nor too large."""
    part = _at_once(images, shares)
    return (part == images or part * shares >= _SHARES[0]) and part * shares <= max(_SHARES[1], most)


def _at_once(images: int, shares: int) -> int:
    """How many images are computed at once, of so many shares each; it divides the number of all."""
    return max(n for n in range(1, images + 1) if images % n == 0 and (n == 1 or n * shares <= _SHARES[1]))


def _by_parts(compute: Callable[[Any], Any], x: Any, size: int, shape: Shape) -> Any:
    """`compute(x)`, of this shape, for `size` images at a time."""
    if size == shape[0]:
        return compute(x)

    def start(i: Any, like: Any) -> list[Any]:
        return [mul(i, place(size)), *[place(0)] * (aval_of(like).ndim - 1)]

    def step(i: Any, out: Any) -> list[Any]:
        images = dynamic_slice_p.bind(x, *start(i, x), slice_sizes=(size, *aval_of(x).shape[1:]))
        return [dynamic_update_slice_p.bind(out, compute(images), *start(i, out))]

    return scalar_loop(step, shape[0] // size, zeros(ShapedArray(shape, aval_of(x).dtype)))[0]


def _sums(shares: Any, padding: Any, grid: _TapGrid) -> Any:
    """The results (N, O, space…). `padding` has the share of an element of the padding for each output and tap."""
    strides, rank = tuple(map(len, grid.moves)), len(grid.moves)
    sums = [functools.partial(_sums_at, moves=m, counts=grid.counts) for m in itertools.product(*grid.moves)]
    places = [noinline(sums_at, shares, padding) for sums_at in sums]
    if len(places) == 1:
        return places[0]
    images, outputs = aval_of(shares).shape[:2]
    apart = reshape(concatenate([expand_dims(x, (0,)) for x in places], 0), (*strides, images, outputs, *grid.counts))
    tiles = Tiles(apart, rank, rank + 1, tuple(range(rank + 2, 2 * rank + 2)), tuple(range(rank)))
    return joined(tiles, tuple(range(rank + 2)), strides, grid.results, [0] * rank)


def _sums_at(shares: Any, padding: Any, moves: Sequence[Sequence[int | None]], counts: Shape) -> Any:
    """The sums for the results at one place in a stride."""
    terms = []
    for taps in itertools.product(*([(k, n) for k, n in enumerate(row) if n is not None] for row in moves)):
        tap, move = [k for k, _ in taps], [n for _, n in taps]
        share = functools.reduce(lambda x, k: index_in_dim(x, k, 2, False), tap, shares)
        of_padding = functools.reduce(lambda x, k: index_in_dim(x, k, 1, False), tap, padding)
        terms.append(_moved(share, of_padding, move, counts))
    empty = ShapedArray((*aval_of(shares).shape[:2], *counts), aval_of(shares).dtype)
    return functools.reduce(add_any, terms) if terms else zeros(empty)


def _moved(share: Any, of_padding: Any, move: Sequence[int], counts: Shape) -> Any:
    """One tap's share (N, O, space…) at the results, in whose margins it is `of_padding` (O,)."""
    space = aval_of(share).shape[2:]
    around = [(n, count - n - size, 0) for n, count, size in zip(move, counts, space, strict=True)]
    moved = pad(share, literal(0, aval_of(share).dtype), [(0, 0, 0), (0, 0, 0), *around])
    inside = [_between(n, n + size, d, counts) for d, (n, size) in enumerate(zip(move, space, strict=True))]
    inside = [x for x in inside if x is not None]
    if not inside:
        return moved
    shape = aval_of(moved).shape
    everywhere = broadcast_in_dim(functools.reduce(bitwise_and, inside), shape, range(2, len(shape)))
    return where(everywhere, moved, broadcast_in_dim(of_padding, shape, (1,)))


def _between(start: int, limit: int, dim: int, shape: Shape) -> Any:
    """Which places along a dimension are in this range; None if all are."""
    if start <= 0 and limit >= shape[dim]:
        return None
    places = iota_p.bind(dtype=np.dtype(np.int32), shape=shape, dimension=dim)
    return bitwise_and(ge(places, literal(start, np.int32)), lt(places, literal(limit, np.int32)))
