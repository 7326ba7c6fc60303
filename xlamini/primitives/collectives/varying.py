"""Casts between varying, invariant, unreduced and reduced along axes of shard_map's mesh; they compute nothing.

`pvary` makes what devices share a value that may differ; its transpose sums what has become of it, or, where devices
share a reduced value, leaves that an unreduced one. In a branch that a varying value chose, devices are divergent, and
`addend` leaves that sum to the conditional. `unvary` claims of a value that devices have the same, which nobody checks;
each then has its share of the cotangent. `unreduce` takes values that vary for terms of a sum.
"""
from __future__ import annotations

import functools
from typing import Any, Final

import numpy as np

from xlamini.core import AvalSharding, Values, aval_of, literal
from xlamini.core.program.checks import NONE
from xlamini.core.program.hi_types import HiAval
from xlamini.core.program.named_axes import divergent_axes, size_of_axis
from xlamini.core.sharding.partial_sums import NO_SUMS, Sums, sums_of
from xlamini.primitives.base.elementwise import mul
from xlamini.primitives.collectives.axes import axis_index
from xlamini.primitives.collectives.casts import Axes, SumCast, VaryingCast, terms_along
from xlamini.primitives.collectives.reductions import psum_p
from xlamini.primitives.elementwise.bitwise import bitwise_and
from xlamini.primitives.elementwise.comparison import eq
from xlamini.primitives.elementwise.select import where


class Vary(VaryingCast):
    """A cast to a value that varies along the axes too, and is reduced along none of them."""

    source = "reduced"
    target = "varying"

    def transpose(self, ct: Any, x: Any, *, axes: Axes) -> Values:
        reduced = sums_of(x.aval).reduced
        ct = unreduce_p.cast(ct, tuple(name for name in axes if name in reduced))
        return [_summed(ct, tuple(name for name in axes if name not in reduced))]


class Addend(VaryingCast):
    """What a device adds to a cotangent while devices are divergent, under the type of the sum, to be taken later."""

    checks = NONE
    source = "varying"
    target = "invarying"

    def transpose(self, ct: Any, x: Any, *, axes: Axes) -> Values:
        return [own_p.bind(ct, axes=axes)]


class Own(VaryingCast):
    """An addend under its true type: each device has its own."""

    checks = NONE
    source = "invarying"
    target = "varying"

    def transpose(self, ct: Any, x: Any, *, axes: Axes) -> Values:
        return [addend_p.bind(ct, axes=axes)]


class Unvary(VaryingCast):
    """The user's promise that a value is equal on all devices along the axes."""

    source = "varying"
    target = "invarying"

    def transpose(self, ct: Any, x: Any, *, axes: Axes) -> Values:
        share = 1 / np.prod([size_of_axis(name) for name in axes])
        return [pvary_p.bind(mul(ct, literal(share, aval_of(ct).dtype)), axes=axes)]


class Unreduce(SumCast):
    """Values that vary as the terms of an unreduced one."""

    source = "varying"
    target = "unreduced"

    def transpose(self, ct: Any, x: Any, *, axes: Axes, mesh: Any) -> Values:
        return [varying_along(ct, frozenset(axes))]


class ReducedCast(SumCast):
    """A value that devices share as a reduced one, whose cotangent is unreduced."""

    source = "invarying"
    target = "reduced"

    def transpose(self, ct: Any, x: Any, *, axes: Axes, mesh: Any) -> Values:
        return [psum_p.bind(terms_along(ct, axes), axes=axes, axis_index_groups=None)]


class Share(SumCast):
    """A reduced value as one that devices share, of whose cotangent then one device has all."""

    source = "reduced"
    target = "invarying"

    def transpose(self, ct: Any, x: Any, *, axes: Axes, mesh: Any) -> Values:
        return [_on_first(ct, axes)]


pvary_p: Final = Vary("pvary")
addend_p: Final = Addend("addend")
own_p: Final = Own("own")
unvary_p: Final = Unvary("unvary")
unreduce_p: Final = Unreduce()
reduce_p: Final = ReducedCast()
share_p: Final = Share()


def sum_of_addends(ct: Any, axes: Axes) -> Any:
    """The cotangent of which devices had addends while they were divergent along the axes."""
    return _summed(ct, axes) if axes else ct


def _summed(ct: Any, axes: Axes) -> Any:
    """The sum along the axes; along those along which devices are divergent, the addend of each."""
    apart = tuple(name for name in axes if name in divergent_axes())
    summed = tuple(name for name in axes if name not in apart)
    ct = addend_p.bind(ct, axes=apart) if apart else ct
    return _shared_sum(ct, summed) if summed else ct


def _shared_sum(x: Any, axes: Axes) -> Any:
    """The sum along the axes as a value that devices share, which the type of a sum along an unchecked axis denies."""
    if type(aval_of(x)) is HiAval:
        raise TypeError(
            f"the cotangent of a value that devices along {axes[0]!r} share is a sum over them, but it is of the type "
            f"{aval_of(x)}, and only arrays have such sums; pass the value sharded, or let its tangents be arrays"
        )
    total = psum_p.bind(x, axes=axes, axis_index_groups=None)
    denied = tuple(name for name in axes if name in aval_of(total).vma)
    return unvary_p.bind(total, axes=denied) if denied else total


def varying_along(x: Any, axes: frozenset[Any]) -> Any:
    """A value that varies along these axes and those along which it did."""
    more = axes - aval_of(x).vma
    return pvary_p.bind(x, axes=tuple(sorted(more, key=str))) if more else x


def with_sums(x: Any, split: AvalSharding | None) -> Any:
    """A value unreduced and reduced along manual axes as a type's sharding says; it is summed where it needs to be."""
    own, wanted = aval_of(x).explicit_sharding, NO_SUMS if split is None else Sums(split.unreduced, split.reduced)
    manual = frozenset(name for s in (own, split) if s is not None for name in s.mesh.manual_axes)
    unreduced, reduced = sums_of(aval_of(x))
    taken = tuple((unreduced - wanted.unreduced) & manual)
    if taken:
        x = psum_p.bind(terms_along(x, taken), axes=taken, axis_index_groups=None)
    x = share_p.cast(x, tuple((reduced - wanted.reduced) & manual))
    x = _on_first(x, tuple((wanted.unreduced - unreduced) & manual))
    return reduce_p.cast(x, tuple((wanted.reduced - reduced) & manual))


def _on_first(x: Any, axes: Axes) -> Any:
    """A value as an unreduced one: what devices share is the term of the first, and zero that of the others."""
    shared = tuple(name for name in axes if name not in aval_of(x).vma)
    if shared:
        is_first = functools.reduce(bitwise_and, [eq(axis_index(name), 0) for name in shared])
        varying = varying_along(x, frozenset(shared))
        x = where(is_first, varying, 0)
    return unreduce_p.cast(x, axes)
