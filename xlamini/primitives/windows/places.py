"""The place in each window of the element that a maximum or a minimum over windows picks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import Shape, aval_of, literal
from xlamini.primitives.elementwise.comparison import ge
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.reductions.ordering import highest, lowest
from xlamini.primitives.shape.shape import broadcast_in_dim
from xlamini.primitives.windows.geometry import Pads
from xlamini.primitives.windows.views import each_view

PLACE = np.dtype(np.int32)


def unpicked(select_prim: Any, dtype: np.dtype) -> Any:
    """The value that `select_prim` (`ge` for a maximum, `le` for a minimum) picks last."""
    return (lowest if select_prim is ge else highest)(dtype)


def places_of(x: Any, select_prim: Any, numbers: Sequence[int], window: Shape, strides: Shape, padding: Pads) -> Any:
    """For each window the number of the place that a comparison of one after another with the best before leaves.

    `numbers` has one for each place, in the order of a window's elements.
    """
    ones, dtype = (1,) * len(window), aval_of(x).dtype
    best, *others = each_view(x, literal(unpicked(select_prim, dtype), dtype), window, strides, padding, ones, ones)
    places = broadcast_in_dim(literal(numbers[0], PLACE), aval_of(best).shape, ())
    for number, other in zip(numbers[1:], others, strict=True):
        stays = select_prim(best, other)
        best, places = where(stays, best, other), where(stays, places, literal(number, PLACE))
    return places
