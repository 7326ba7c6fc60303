"""Window geometry: padding by name, dilated sizes, the number of windows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import Shape, ShapeError, Values
from xlamini.core.program.avals import MAX_EXTENT
from xlamini.core.sizes.expression import SymbolicSize, as_size, is_symbolic_shape, max_size
from xlamini.core.sizes.shapes import largest

Pads = tuple[tuple[int, int], ...]


def padtype_to_pads(
    in_shape: Sequence[int], window_shape: Sequence[int], window_strides: Sequence[int], padding: str
) -> list[tuple[int, int]]:
    """The padding before and after each dimension for a padding type given by name.

    "VALID" is none; with "SAME" there are `size / stride` windows, rounded up, and an odd element of padding comes
    last; with "SAME_LOWER" it comes first. TypeError for what is no string, RuntimeError for another name.

    >>> padtype_to_pads((5,), (2,), (1,), "SAME")
    [(0, 1)]
    """
    if not isinstance(padding, str):
        raise TypeError(f"padtype_to_pads: padding must be 'SAME', 'SAME_LOWER' or 'VALID', got {padding!r}")
    kind = padding.upper()
    if kind == "VALID":
        return [(0, 0)] * len(in_shape)
    if kind not in ("SAME", "SAME_LOWER"):
        raise RuntimeError(
            f"padtype_to_pads: unknown padding {padding!r}; write 'SAME', 'SAME_LOWER', 'VALID', or a pair "
            "(before, after) for each dimension"
        )
    totals = [
        max_size((-(-n // stride) - 1) * stride + window - n, 0)
        for n, window, stride in zip(in_shape, window_shape, window_strides, strict=True)
    ]
    halves = [(total // 2, total - total // 2) for total in totals]
    return halves if kind == "SAME" else [(high, low) for low, high in halves]


def as_pads(
    name: str, padding: Any, sizes: Sequence[int], windows: Sequence[int], strides: Sequence[int]
) -> Pads:
    """A user's padding, given by name or in pairs, in pairs; TypeError or ValueError naming the function."""
    if isinstance(padding, str):
        if not len(sizes) == len(windows) == len(strides):
            raise ShapeError(
                f"{name}: padding {padding!r} needs windows and strides for {len(sizes)} dimensions, got windows "
                f"{tuple(windows)} and strides {tuple(strides)}"
            )
        try:
            return tuple(padtype_to_pads(sizes, windows, strides, padding))
        except RuntimeError as error:
            raise RuntimeError(str(error).replace("padtype_to_pads", name, 1)) from None
    try:
        return tuple((as_size(low), as_size(high)) for low, high in padding)
    except (TypeError, ValueError):
        raise TypeError(
            f"{name}: padding must be 'SAME', 'SAME_LOWER', 'VALID', or a pair (before, after) for each dimension, "
            f"got {padding!r}"
        ) from None


def as_numbers(name: str, what: str, values: Any, default: int, count: int) -> Shape:
    """A user's sequence of static integers; None is `default` for each dimension."""
    if values is None:
        return (default,) * count
    try:
        return tuple(as_size(v) for v in np.asarray(values, object).ravel())
    except TypeError:
        raise TypeError(f"{name}: {what} must be a sequence of {count} ints, got {values!r}") from None


def check_numbers(name: str, count: int, **arguments: Values) -> None:
    """ShapeError unless each argument has a number for each dimension, and none that is below 1."""
    for what, values in arguments.items():
        if len(values) != count:
            raise ShapeError(f"{name}: {what} must have {count} entries, one for each dimension, got {values}")
        if any(v < 1 for v in values):
            raise ShapeError(f"{name}: {what} must be 1 or more in each dimension, got {values}")
        if any(v >= 2**63 for v in values):
            raise ShapeError(f"{name}: {what} must be below 2**63 in each dimension, got {values}")


def dilated(sizes: Sequence[int], dilation: Sequence[int]) -> Shape:
    """Sizes after `dilation - 1` holes were put between neighbours."""
    return tuple(max_size((n - 1) * d + 1, 0) for n, d in zip(sizes, dilation, strict=True))


def window_counts(
    sizes: Sequence[int],
    windows: Sequence[int],
    strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Shape:
    """The number of windows along each dimension; ShapeError where XLA's sums of the sizes would overflow."""
    base = sizes if base_dilation is None else dilated(sizes, base_dilation)
    reach = windows if window_dilation is None else dilated(windows, window_dilation)
    _check_extents(base, reach, padding)
    return tuple(
        max_size((low + n + high - window) // stride + 1, 0)
        for n, window, stride, (low, high) in zip(base, reach, strides, padding, strict=True)
    )


MOST_PLACES = 2**36
"""More than any window has: XLA's CPU backend visits one place of a window after another."""


def _check_extents(base: Sequence[int], reach: Sequence[int], padding: Sequence[tuple[int, int]]) -> None:
    around = [abs(n) for pair in padding for n in pair if type(n) is not SymbolicSize]
    for what, extents in (("an operand", base), ("a window", reach), ("padding", around)):
        if largest(extents) > MAX_EXTENT:
            raise ShapeError(
                f"{what} of size {largest(extents)}, with its dilation, is larger than any array; make the sizes, the "
                "padding or the dilation smaller"
            )


def pads_attribute(padding: Pads) -> Any:
    """Pairs of padding in MLIR's notation; those with a symbolic size as they are."""
    if any(map(is_symbolic_shape, padding)):
        return padding
    pairs = [list(pair) for pair in padding] or ""
    return f"dense<{pairs}> : tensor<{len(padding)}x2xi64>"
