"""The place of a program in the grid, while its kernel is traced: `program_id` and `num_programs`."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import Builder
from xlamini.runtime import Array

_PLACE: Any = object()
"""The entry in the memo of a builder that says where the program being traced is in its grid."""
_KERNEL: Any = object()
"""The entry in the memo of the builder of a kernel."""


class GridPlace(NamedTuple):
    """The indices of a program, and the size of the grid."""

    ids: Sequence[Any]
    grid: tuple[int, ...]


def start_kernel(ids: Sequence[Any], grid: tuple[int, ...]) -> None:
    """Say that the active builder is that of a kernel, and where its program is."""
    state.builder.memo[_KERNEL] = True  # type: ignore[union-attr]
    set_place(ids, grid)


def set_place(ids: Sequence[Any], grid: tuple[int, ...]) -> None:
    """Say where in a grid the program is that is traced into the active builder."""
    state.builder.memo[_PLACE] = GridPlace(ids, grid)  # type: ignore[union-attr]


def program_id(axis: int) -> Array:
    """The index of the program along an axis of the grid, an int32; only inside of a kernel.

    Raises RuntimeError outside of kernels, ValueError for an axis that the grid does not have.

    >>> pl.pallas_call(lambda o: o.set(program_id(0)), xlamini.ShapeDtypeStruct((), "int32"), grid=(3,))()
    Array(2, dtype=int32)
    """
    place = _place("program_id")
    return place.ids[_axis("program_id", axis, place)]


def num_programs(axis: int) -> int:
    """The size of the grid along an axis; only inside of a kernel.

    Raises RuntimeError outside of kernels, ValueError for an axis that the grid does not have.

    >>> pl.pallas_call(lambda o: o.set(num_programs(0)), xlamini.ShapeDtypeStruct((), "int32"), grid=(3,))()
    Array(3, dtype=int32)
    """
    place = _place("num_programs")
    return place.grid[_axis("num_programs", axis, place)]


def _axis(what: str, axis: int, place: GridPlace) -> int:
    axis = operator.index(axis)
    if not 0 <= axis < len(place.grid):
        raise ValueError(f"{what}: axis {axis} is not one of the {len(place.grid)} axes of the grid {place.grid}")
    return axis


def _place(what: str) -> GridPlace:
    return _builder_with(_PLACE, what).memo[_PLACE]


def kernel_builder(what: str) -> Builder:
    """The builder of the kernel that is being traced; RuntimeError outside of kernels."""
    return _builder_with(_KERNEL, what)


def _builder_with(entry: Any, what: str) -> Builder:
    builder = state.builder
    while builder is not None:
        if entry in builder.memo:
            return builder
        builder = builder.parent
    raise RuntimeError(f"{what} is only known inside of a kernel; call it in the function that pallas_call runs")
