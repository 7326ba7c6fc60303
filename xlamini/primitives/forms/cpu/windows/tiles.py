"""An array cut into tiles, and tiles put together again: how windows that do not overlap become rows of a matrix."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core import Shape, aval_of, literal
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.shape import reshape, transpose
from xlamini.primitives.shape.slice import slice


class Tiles(NamedTuple):
    """An array whose spatial dimensions are two each, and where its dimensions are: which tile, and where inside it."""

    array: Any
    batch: int
    features: int
    which: Shape
    inside: Shape

    def moved(self, *dims: int) -> Any:
        """The array with its dimensions in this order."""
        return transpose(self.array, dims)


def cut(x: Any, spec: Shape, counts: Shape, sizes: Shape, taken: Shape, lows: Sequence[int]) -> Tiles:
    """`x`, with `lows` zeros in front, as tiles; of each the first elements that are `taken`.

    `spec` lists the dimensions of x in the order batch, features, space; the others are of space.
    """
    shape, space = aval_of(x).shape, spec[2:]
    around, split, limits = [(0, 0, 0)] * len(shape), [[n] for n in shape], [[n] for n in shape]
    for d, count, size, part, low in zip(space, counts, sizes, taken, lows, strict=True):
        around[d] = (low, count * size - low - shape[d], 0)
        split[d], limits[d] = [count, size], [count, part]
    x = pad(x, literal(0, aval_of(x).dtype), around) if any(map(any, around)) else x
    apart, limit = [*itertools.chain(*split)], [*itertools.chain(*limits)]
    x = reshape(x, apart)
    x = x if apart == limit else slice(x, (0,) * len(limit), limit)
    at = [d + sum(d > other for other in space) for d in range(len(shape))]
    which = tuple(at[d] for d in space)
    return Tiles(x, at[spec[0]], at[spec[1]], which, tuple(d + 1 for d in which))


def joined(tiles: Tiles, spec: Shape, sizes: Shape, whole: Shape, lows: Sequence[int]) -> Any:
    """The array of tiles enlarged by zeros to `sizes`, in the order `spec`, from `lows` on, of size `whole`."""
    x, zero = tiles.array, literal(0, aval_of(tiles.array).dtype)
    around = [(0, 0, 0)] * aval_of(x).ndim
    for d, size in zip(tiles.inside, sizes, strict=True):
        around[d] = (0, size - aval_of(x).shape[d], 0)
    x = pad(x, zero, around) if any(map(any, around)) else x
    pairs = [(tiles.batch,), (tiles.features,), *zip(tiles.which, tiles.inside, strict=True)]
    order = [pairs[spec.index(d)] for d in range(len(spec))]
    joint = [math.prod(aval_of(x).shape[d] for d in pair) for pair in order]
    x = reshape(transpose(x, [*itertools.chain(*order)]), joint)
    cropped = [(0, 0, 0)] * len(spec)
    for d, low, size in zip(spec[2:], lows, whole, strict=True):
        cropped[d] = (-low, size + low - joint[d], 0)
    return pad(x, zero, cropped) if any(map(any, cropped)) else x
