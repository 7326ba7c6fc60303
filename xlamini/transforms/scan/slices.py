"""Validation of a loop's stacked inputs (xs): all arrays have one length along dimension 0, the trip count."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import ShapedArray, Values
from xlamini.core.errors import ShardingTypeError
from xlamini.core.flags.config import strict_sharding
from xlamini.core.program.hi_types import HiAval
from xlamini.core.sharding.propagation import warn_of_open_split
from xlamini.core.sizes.expression import as_size
from xlamini.primitives import reshard_as
from xlamini.staging import checked_avals


def slices_of(
    what: str, leaves: Values, names: Sequence[str], length: Any = None
) -> tuple[list[ShapedArray], int]:
    """The avals of the slices, and the trip count."""
    avals = checked_avals(leaves, names, what)
    for i, aval in enumerate(avals):
        if not aval.shape and type(aval) is not HiAval:
            raise ValueError(
                f"{what}: {names[i]} is a scalar, {aval.str_short(short_dtypes=False)}, which has no slices; close "
                "over a value that all iterations share, or repeat it with jnp.broadcast_to"
            )
    count = _length(what, length)
    for i, aval in enumerate(avals):
        if type(aval) is HiAval:  # whose type may not tell its length
            continue
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
    return [a.without(0, count) if type(a) is HiAval else a.without(0) for a in avals], count


def unsharded(what: str, leaves: Values, names: Sequence[str]) -> list[Any]:
    """The arrays, not sharded along dimension 0; one that is, is resharded with a warning, or a ShardingTypeError."""
    return [_unsharded(what, x, names[i]) if _is_sharded(x) else x for i, x in enumerate(leaves)]


def _is_sharded(x: Any) -> bool:
    sharding = getattr(getattr(x, "aval", None), "explicit_sharding", None)
    return sharding is not None and bool(sharding.entries) and bool(sharding.entries[0])


def _unsharded(what: str, x: Any, name: str) -> Any:
    problem = (
        f"{what}: dimension 0 of {name}, {x.aval.str_long()}, is scanned over and must not be sharded; xlamini.reshard "
        "it to a spec that begins with None"
    )
    if strict_sharding.value:
        raise ShardingTypeError(problem)
    warn_of_open_split(f"{problem}, which happens here")
    return reshard_as(x, x.aval.explicit_sharding.with_entries(((), *x.aval.explicit_sharding.entries[1:])))


def _length(what: str, length: Any) -> int | None:
    if length is None:
        return None
    whole: Any = int(length) if isinstance(length, float) and length.is_integer() else length
    try:
        number = as_size(whole)
    except TypeError:
        raise TypeError(
            f"{what}: length must be an int that is known when the loop is traced, got {length!r} of type "
            f"{type(length).__name__}; for a trip count that is computed use fori_loop or while_loop"
        ) from None
    if number < 0:
        raise ValueError(f"{what}: length must be 0 or more, got {number}")
    return number
