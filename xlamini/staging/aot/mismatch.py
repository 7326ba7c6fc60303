"""Functions that were made for arguments of certain types: how those of a call differ from them."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core.avals import ShapedArray
from xlamini.core.dtypes import canonicalize_dtype
from xlamini.staging.trace.arguments import avals_of, check_values


class Difference(NamedTuple):
    """An argument's name, its type, and the type that the function was made for."""

    name: str
    found: ShapedArray
    wanted: ShapedArray

    @property
    def in_shape(self) -> bool:
        """Whether the shapes differ, and not only the dtypes."""
        return self.found.shape != self.wanted.shape


def differences(
    leaves: Sequence[Any], names: Sequence[str], wanted: Sequence[ShapedArray], fun_name: str
) -> list[Difference]:
    """The arguments of another shape or dtype; an error for one that is no array, or has no value."""
    found = avals_of(leaves, names, fun_name)
    check_values(leaves, names, fun_name)
    return [
        Difference(names[i], a, b)
        for i, (a, b) in enumerate(zip(found, wanted, strict=True))
        if (a.shape, canonicalize_dtype(a.dtype, True)) != (b.shape, b.dtype)
    ]


def shown(wrong: Sequence[Difference], made: str) -> str:
    """Arguments that differ, in words; `made` is what the function was for these types."""
    return "; ".join(
        f"{name}: {made} for {wanted.str_short()}, called with {found.str_short()}" for name, found, wanted in wrong
    )
