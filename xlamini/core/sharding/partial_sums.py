"""Partial sums in types: which operations take unreduced operands, and which results are unreduced or reduced.

Along an axis on which a value is unreduced, each device has a term, and the value is the sum of the terms. An operation
can be applied to the terms where it is linear in them. A primitive says so by `linear`: groups of operands, in each of
which it is linear jointly while the other operands are constant. All operands of a group are unreduced together. The
others must be equal on all devices; they say so by their type, reduced, or are scalars, or have no derivative. All
other primitives refuse an unreduced operand. A result is reduced along the axes along which all operands are.

An equation that a rewrite makes is not refused, as no user could mend it: its operands are resharded until they fit.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from jaxlib._jax import config as _cells

from xlamini.core.program.avals import NOWHERE, Avals, Params, ShapedArray, aval_of
from xlamini.core.program.tangents import is_differentiable
from xlamini.core.sharding.aval_sharding import AvalSharding

Axes = frozenset[Any]
Groups = Sequence[slice]

JOINTLY: Groups = (slice(None),)
"""Linear in all operands together, as a sum is."""
IN_EACH: Groups = (slice(0, 1), slice(1, 2))
"""Linear in each of two operands while the other is constant, as a product is."""
IN_FIRST: Groups = (slice(0, 1),)
"""Linear in the first operand while the others are constant, as a quotient is."""


class Sums(NamedTuple):
    """The axes along which a value is unreduced, and those along which it is reduced."""

    unreduced: Axes = NOWHERE
    reduced: Axes = NOWHERE


_left_open = _cells.Config("sums_left_open", None, include_in_jit_key=True, include_in_trace_context=True)


@contextmanager
def sums_left_open(axes: Axes | None) -> Iterator[None]:
    """Within it sums over dimensions that are split along exactly these axes are not taken: results are unreduced."""
    before = _left_open.swap_local(axes)
    try:
        yield
    finally:
        _left_open.set_local(before)


def left_open(params: Params, splits: Iterable[Axes]) -> Params:
    """The params of a primitive that sums over dimensions, which `splits` split in each of its operands.

    `unreduced` among them are the axes along which the sum is not taken: as given, or by `sums_left_open`. It is left
    out unless the dimensions are split along these axes.
    """
    axes = params.get("unreduced", _left_open.value)
    if axes is None:
        return params
    rest = {name: value for name, value in params.items() if name != "unreduced"}
    return {**rest, "unreduced": axes} if all(names == axes for names in splits) else rest


def split_along(x: Any, dimensions: Iterable[int]) -> Axes:
    """The axes that split these dimensions of a value."""
    split = aval_of(x).explicit_sharding
    return NOWHERE if split is None else NOWHERE.union(*[split.entries[d] for d in dimensions])


class Misfit(NamedTuple):
    """What is wrong with an equation's operands, and the shardings in which they would fit."""

    problem: str
    wanted: Sequence[AvalSharding | None]


NO_SUMS = Sums()


def sums_of(aval: ShapedArray) -> Sums:
    """The axes along which values of a type are unreduced and reduced."""
    return (
        NO_SUMS
        if aval.explicit_sharding is None
        else Sums(aval.explicit_sharding.unreduced, aval.explicit_sharding.reduced)
    )


def sums_of_results(avals: Avals) -> Sums:
    """The sums of an equation's results, where its operands fit together."""
    unreduced = _unreduced(avals)
    split = NOWHERE.union(*map(_split_axes, avals))
    return Sums(unreduced, NOWHERE.union(*[sums_of(a).reduced for a in avals]) - unreduced - split)


def misfit(primitive: Any, avals: Avals, params: Params) -> Misfit | None:
    """Why an equation cannot have these operands, of which some are unreduced or reduced; None if it can."""
    if primitive.higher_order or primitive.sharding.maps_each or not any(any(sums_of(a)) for a in avals):
        return None
    checks = _Checks(primitive, avals, primitive.sharding.groups(avals, params))
    return checks.of_unreduced() or (None if primitive.sharding.mixes_reduced else checks.of_reduced())


class _Checks:
    """Looks for what does not fit in the operands of one equation; `inside` are those that are to be unreduced."""

    def __init__(self, primitive: Any, avals: Avals, groups: Groups):
        self.primitive, self.avals, self.groups = primitive, avals, groups
        self.unreduced = _unreduced(avals)
        self.inside = self._inside()

    def _inside(self) -> frozenset[int] | None:
        """The group of operands that has all the unreduced ones; none if nothing is, None if there is no such group."""
        numbers = range(len(self.avals))
        holders = {i for i in numbers if sums_of(self.avals[i]).unreduced}
        if not holders:
            return frozenset()
        return next((frozenset(numbers[g]) for g in self.groups if holders <= set(numbers[g])), None)

    def of_unreduced(self) -> Misfit | None:
        unreduced, along = self.unreduced, _said(self.unreduced)
        if self.inside is None:
            return self._misfit(
                f"is not linear in an operand that is unreduced along {along}, a sum still to be taken; take it first, "
                f"with {self._how_to_sum()}",
                {},
            )
        if any(sums_of(self.avals[i]).unreduced != unreduced for i in self.inside):
            return self._misfit(
                f"needs all operands unreduced along {along} or none; xlamini.reshard one of them",
                dict.fromkeys(self.inside, Sums(unreduced, self._reduced_of(self.inside))),
            )
        others = [i for i in range(len(self.avals)) if i not in self.inside]
        if all(_is_constant(self.avals[i], unreduced) for i in others):
            return None
        return self._misfit(
            f"has an operand that is unreduced along {along}, so the other must be reduced along it, as by "
            f"xlamini.reshard(x, P(reduced={{{along}}})); or xlamini.reshard the first to take the sum",
            {i: Sums(reduced=sums_of(self.avals[i]).reduced | unreduced) for i in others},
        )

    def of_reduced(self) -> Misfit | None:
        counted = [i for i, a in enumerate(self.avals) if _counts(a)]
        found = {sums_of(self.avals[i]).reduced - self.unreduced for i in counted}
        if len(found) < 2:
            return None
        reduced = NOWHERE.union(*found)
        own = {i: sums_of(self.avals[i]) for i in counted}
        wanted = {i: Sums(s.unreduced, s.reduced | reduced - s.unreduced) for i, s in own.items()}
        return self._misfit(
            f"needs all operands reduced along {_said(reduced)} or none; xlamini.reshard one of them, as to "
            f"P(reduced={{{_said(reduced)}}})",
            wanted,
        )

    def _how_to_sum(self) -> str:
        manual = any(
            a.explicit_sharding is not None and self.unreduced.intersection(a.explicit_sharding.mesh.manual_axes)
            for a in self.avals
        )
        return "psum or psum_scatter" if manual else "xlamini.reshard(x, P(...))"

    def _reduced_of(self, numbers: Iterable[int]) -> Axes:
        return NOWHERE.union(*[sums_of(self.avals[i]).reduced for i in numbers])

    def _misfit(self, problem: str, wanted: Mapping[int, Sums]) -> Misfit:
        types = " and ".join(a.str_short() for a in self.avals)
        return Misfit(f"{self.primitive} of {types} {problem}", self._fitting(wanted))

    def _fitting(self, wanted: Mapping[int, Sums]) -> list[AvalSharding | None]:
        """The operands' shardings with these sums; without any if an operand is split along such an axis."""
        mesh = next(a.explicit_sharding.mesh for a in self.avals if a.explicit_sharding is not None)
        sums = [wanted.get(i, sums_of(a)) for i, a in enumerate(self.avals)]
        possible = wanted and all(
            (s.unreduced | s.reduced).isdisjoint(_split_axes(a)) and s.unreduced.isdisjoint(s.reduced)
            for a, s in zip(self.avals, sums, strict=True)
        )
        splits = [a.explicit_sharding or AvalSharding(mesh, ((),) * a.ndim) for a in self.avals]
        return [split.with_sums(*(s if possible else NO_SUMS)) for split, s in zip(splits, sums, strict=True)]


def _unreduced(avals: Avals) -> Axes:
    return NOWHERE.union(*[sums_of(a).unreduced for a in avals])


def _split_axes(aval: ShapedArray) -> Axes:
    return (
        NOWHERE
        if aval.explicit_sharding is None
        else frozenset(name for names in aval.explicit_sharding.entries for name in names)
    )


def _counts(aval: ShapedArray) -> bool:
    """Whether a cotangent of some size, or one that is unreduced, goes to an operand."""
    return is_differentiable(aval) and (aval.ndim > 0 or any(sums_of(aval)))


def _is_constant(aval: ShapedArray, unreduced: Axes) -> bool:
    """Whether a factor of an unreduced operand has one value along these axes, and its type says so."""
    if not unreduced.isdisjoint(_split_axes(aval)):
        return False
    return not _counts(aval) or unreduced <= sums_of(aval).reduced


def _said(names: Axes) -> str:
    return ", ".join(sorted(map(repr, names)))
