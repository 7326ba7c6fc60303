"""The facet `sharding` of a primitive: how its results are split, summed and typed as its operands are.

`same_dimensions(linear=JOINTLY)` says that operands and results have the same dimensions, which are split alike, and
that the operation is linear in all operands together, so that it can be applied to the terms of unreduced ones.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xlamini.core.program.avals import Avals, Params
from xlamini.core.sharding.factors import Factors, alike, apart, broadcasting, in_front, reducing
from xlamini.core.sharding.partial_sums import Groups, Sums
from xlamini.core.sharding.propagation import Splits

Vma = frozenset[Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sharding:
    """What sharding asks of an operation. Rules are given the types of the operands, of the results, and the params."""

    factors: Callable[[Avals, Avals, Params], Factors] | None = None
    """Which dimensions of operands and results share a sharding; without it, no operand may be split."""
    splits: Callable[[Avals, Avals, Params], Splits] | None = None
    """The results' shardings, where an operand is sharded along explicit axes; without it, they follow from `factors`.
    """
    chooses: bool = False
    """It chooses its results' sharding itself, whatever the operands' shardings are."""
    sums: Callable[[Avals, Avals, Params], Sequence[Sums]] | None = None
    """The axes along which each result is unreduced and reduced, for operands that fit; by default as the operands."""
    linear: Groups | Callable[[Avals, Params], Groups] = ()
    """The groups of operands in each of which it is linear jointly, and so takes unreduced ones (partial_sums.py)."""
    maps_each: bool = False
    """Whether it returns each operand, in order, so that none has to fit another."""
    mixes_reduced: bool = False
    """Whether its operands may be reduced along different axes."""
    varying: Callable[[Vma, Params], Vma] | None = None
    """The results' varying manual axes, where the operands' are given; by default these."""
    chooses_axes: bool = False
    """The results' varying manual axes are those of `shape_rule`'s types, whatever the operands' are."""
    casts: bool = False
    """It changes the manual axes along which a value varies (vma), so its operands are never cast."""
    named_axes: Callable[[Params], Sequence[Any]] | None = None
    """The named axes that an equation refers to; by default none."""
    is_manual: Callable[[Params], bool] | None = None
    """Whether each device runs the jaxprs among the params on its own shards; by default as the program around."""
    chooses_memory: bool = False
    """The results' memory spaces are those of `shape_rule`'s types, whatever the operands' are."""

    def groups(self, avals: Avals, params: Params) -> Groups:
        """`linear`, for these operands."""
        return self.linear(avals, params) if callable(self.linear) else self.linear


WHOLE = Sharding()


def same_dimensions(*, whole: str | Sequence[str] = (), **pieces: Any) -> Sharding:
    """Of an operation that leaves dimensions where they are; those that the params `whole` name must not be split."""
    names = (whole,) if isinstance(whole, str) else whole

    def factors(avals: Avals, outs: Avals, params: Params) -> Factors:
        return alike(avals, outs, [params[name] for name in names])

    return Sharding(factors=factors, **pieces)


def broadcast_dimensions(**pieces: Any) -> Sharding:
    """Of an operation on elements: dimensions are paired from the last on, those of size 1 stretch."""
    return Sharding(factors=lambda avals, outs, params: broadcasting(avals, outs[0]), **pieces)


def reduced_dimensions(axes: str, **pieces: Any) -> Sharding:
    """Of an operation that computes dimensions away, those of the param `axes`, and leaves the others."""
    return Sharding(factors=lambda avals, outs, params: reducing(avals[0], params[axes]), **pieces)


def stacked_dimensions(rank: int, **pieces: Any) -> Sharding:
    """Of an operation on stacks of arrays of this rank: the dimensions in front stay, the others must be whole."""
    return Sharding(factors=lambda avals, outs, params: in_front(avals, outs, avals[0].ndim - rank), **pieces)


def leading_dimensions(**pieces: Any) -> Sharding:
    """Of an operation that has dimensions of its own behind those that operand and result share."""
    return Sharding(
        factors=lambda avals, outs, params: in_front(avals, outs, min(avals[0].ndim, outs[0].ndim)), **pieces
    )


def unrelated_dimensions(**pieces: Any) -> Sharding:
    """Of a call of code outside of the program, which takes whole arrays and returns them."""

    def factors(avals: Avals, outs: Avals, params: Params) -> Factors:
        return Factors(apart(avals), [(None,) * a.ndim for a in outs])

    return Sharding(factors=factors, **pieces)
