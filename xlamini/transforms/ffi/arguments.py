"""The arguments that calls of foreign functions share: types of results, layouts, aliases."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xlamini.core import Avals, ShapedArray
from xlamini.interpreters.physical import physical_aval

Layout = tuple[int, ...]
"""The dimensions of an array, major one first."""
Memory = tuple[ShapedArray, Layout]
"""The type of an array, and its layout."""
Aliases = tuple[tuple[int, int], ...]
"""Pairs of an input and the output that overwrites it."""


def layouts(given: Any, avals: Avals, name: str) -> tuple[Layout, ...]:
    """The layout of each array; where none is given, row-major. `name` is the argument's.

    Raises:
      ValueError: another number of layouts than arrays, or one that is no permutation of the dimensions.
    """
    ranks = [physical_aval(aval).ndim for aval in avals]
    if given is None:
        return tuple(tuple(range(rank)) for rank in ranks)
    if not isinstance(given, Sequence) or len(given) != len(ranks):
        raise ValueError(
            f"ffi_call: {name} must have a layout for each of the {len(ranks)} arrays, or None for row-major, got "
            f"{given!r}"
        )
    return tuple(_layout(x, rank, f"{name}[{i}]") for i, (x, rank) in enumerate(zip(given, ranks, strict=True)))


def _layout(given: Any, rank: int, what: str) -> Layout:
    if given is None:
        return tuple(range(rank))
    if getattr(given, "tiling", None) is not None:
        raise ValueError(f"ffi_call: {what} has tiles, which the FFI does not pass; leave out the tiling")
    order = getattr(given, "major_to_minor", given)
    if not isinstance(order, Sequence) or sorted(order) != list(range(rank)):
        raise ValueError(
            f"ffi_call: {what} is {given!r}, but the array has {rank} dimensions; list each of 0 to {rank - 1} once, "
            "the slowest first"
        )
    return tuple(int(d) for d in order)


def aliases(
    name: str,
    given: Mapping[int, int] | None,
    inputs: Sequence[Memory],
    outputs: Sequence[Memory],
) -> Aliases:
    """The aliases of a call of the public function `name`, sorted by input.

    Raises:
      TypeError: no dict from ints to ints.
      ValueError: an index out of range, two inputs for one output, or arrays of different types or layouts.
    """
    table = {} if given is None else given
    if not isinstance(table, Mapping) or not all(hasattr(i, "__index__") for pair in table.items() for i in pair):
        raise TypeError(f"{name}: input_output_aliases must be a dict from inputs to outputs, {{0: 0}}, got {given!r}")
    pairs = tuple(sorted((int(i), int(o)) for i, o in table.items()))
    for i, o in pairs:
        _check_alias(i, o, inputs, outputs, f"{name}: input_output_aliases has {i}: {o}")
    if len({o for _, o in pairs}) < len(pairs):
        raise ValueError(f"{name}: input_output_aliases has two inputs for one output: {dict(pairs)}; leave one out")
    return pairs


def _check_alias(i: int, o: int, inputs: Sequence[Memory], outputs: Sequence[Memory], what: str) -> None:
    if not 0 <= i < len(inputs) or not 0 <= o < len(outputs):
        raise ValueError(f"{what}, but there are {len(inputs)} inputs and {len(outputs)} outputs, counted from 0")
    x, y = _described(*inputs[i]), _described(*outputs[o])
    if x != y:
        raise ValueError(
            f"{what}, but the input is {x} and the output {y}; an output takes the memory of an input of its shape, "
            "dtype and layout"
        )


def _described(aval: ShapedArray, layout: Layout) -> str:
    aval = physical_aval(aval)
    return f"{ShapedArray(aval.shape, aval.dtype).str_short(short_dtypes=False)} of layout {layout}"
