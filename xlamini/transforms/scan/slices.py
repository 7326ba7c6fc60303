"""Validation of a loop's stacked inputs (xs): all arrays have one length along dimension 0, the trip count."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from xlamini.core import Avals, ShapedArray, Values
from xlamini.core.errors import ShardingTypeError
from xlamini.staging import avals_of, check_values


def slices_of(
    what: str, leaves: Values, names: Sequence[str], length: Any = None
) -> tuple[list[ShapedArray], int]:
    """The avals of the slices, and the trip count."""
    avals = avals_of(leaves, names, what)
    check_values(leaves, names, what)
    for name, aval in zip(names, avals, strict=True):
        if not aval.shape:
            raise ValueError(
                f"{what}: {name} is a scalar, {aval.str_short(short_dtypes=False)}, which has no slices; close over "
                "a value that all iterations share, or repeat it with jnp.broadcast_to"
            )
    count = _length(what, length)
    for i, aval in enumerate(avals):
        if count is not None and aval.shape[0] != count:
            where = f"{names[0]} has length {count}" if length is None else f"length is {count}"
            raise ValueError(
                f"{what}: all arrays in xs must be of one length along dimension 0, but {where} and {names[i]}, "
                f"{aval.str_short(short_dtypes=False)}, has {aval.shape[0]}; cut them to one length"
            )
        count = aval.shape[0]
    if count is None:
        raise ValueError(
            f"{what}: xs has no arrays, so the trip count is unknown; pass at least one array, or call lax.scan with "
            "length=n"
        )
    _check_unsharded(what, avals, names)
    return [a.without(0) for a in avals], count


def _check_unsharded(what: str, avals: Avals, names: Sequence[str]) -> None:
    for i, aval in enumerate(avals):
        if aval.split is not None and aval.split.entries[0]:
            raise ShardingTypeError(
                f"{what}: dimension 0 of {names[i]}, {aval.str_short(short_dtypes=False)}, is scanned over and must "
                "not be sharded; xlamini.reshard it to a spec that begins with None"
            )


def _length(what: str, length: Any) -> int | None:
    if length is None:
        return None
    try:
        number = operator.index(length)
    except TypeError:
        raise TypeError(
            f"{what}: length must be an int that is known when the loop is traced, got {length!r} of type "
            f"{type(length).__name__}; for a trip count that is computed use fori_loop or while_loop"
        ) from None
    if number < 0:
        raise ValueError(f"{what}: length must be 0 or more, got {number}")
    return number


