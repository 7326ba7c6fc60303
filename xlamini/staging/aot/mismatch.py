"""Argument mismatches: how the types of a call differ from those that a function was compiled for."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xlamini.core import Avals, ShapedArray, Values, canonicalize_dtype
from xlamini.staging.trace.arguments import checked_avals


class Difference(NamedTuple):
    """An argument's name, its type, and the type that the function was compiled for."""

    name: str
    found: ShapedArray
    wanted: ShapedArray

    @property
    def in_shape(self) -> bool:
        """Whether the shapes differ, and not only the dtypes."""
        return self.found.shape != self.wanted.shape


def differences(
    leaves: Values, names: Sequence[str], wanted: Avals, fun_name: str
) -> list[Difference]:
    """The arguments with a different shape or dtype; an error for one that is no array, or has no value."""
    found = checked_avals(leaves, names, fun_name)
    return [
        Difference(names[i], a, b)
        for i, (a, b) in enumerate(zip(found, wanted, strict=True))
        if (a.shape, canonicalize_dtype(a.dtype, True)) != (b.shape, b.dtype)
    ]


def shown(wrong: Sequence[Difference], made: str) -> str:
    """The mismatches as text; `made` is the participle of what was done for these types, such as "compiled"."""
    return "; ".join(
        f"{name}: {made} for {wanted.str_short()}, called with {found.str_short()}" for name, found, wanted in wrong
    )
