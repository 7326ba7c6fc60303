"""Hints for the compiler of GPUs' kernels: what it may assume of integers from which places in memory are computed."""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from xlamini.core import aval_of
from xlamini.primitives.base.dtype_kinds import INTEGER
from xlamini.primitives.base.elementwise import Elementwise, elementwise
from xlamini.runtime import Array


class Hint(Elementwise):
    """The operand itself."""

    def lower(self, ctx: Any, x: Any, *, hint: str, values: tuple[int, ...]) -> Any:
        add_hint = getattr(ctx, "add_hint", None)
        return x if add_hint is None else add_hint(x, hint, values)


@elementwise(family=Hint, accepts=INTEGER, flops=0)
def hint_p(x: Any, *, hint: str, values: tuple[int, ...]) -> Any:
    """The operand, of which the compiler may assume something."""


hint_p.name = "hint"


def multiple_of(x: Any, values: int | Sequence[int]) -> Array:
    """`x`, of which the compiler may assume that it is a multiple of `values`, a number or one for each dimension.

    >>> multiple_of(jnp.int32(32), 16)
    Array(32, dtype=int32)
    """
    return hint_p.bind(x, hint="divisibility", values=_values("multiple_of", x, values))


def max_contiguous(x: Any, values: int | Sequence[int]) -> Array:
    """`x`, of which the compiler may assume that so many elements in a row count up by 1, a number for each dimension.

    >>> max_contiguous(jnp.arange(4), 4)
    Array([0, 1, 2, 3], dtype=int32)
    """
    return hint_p.bind(x, hint="contiguity", values=_values("max_contiguous", x, values))


def _values(what: str, x: Any, values: Any) -> tuple[int, ...]:
    found = tuple(map(operator.index, values)) if isinstance(values, Sequence) else (operator.index(values),)
    rank = max(aval_of(x).ndim, 1)
    if len(found) != rank:
        raise ValueError(f"{what}: {len(found)} values for an array of {rank} dimensions; give one for each")
    return found
