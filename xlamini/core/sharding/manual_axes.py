"""Varying manual axes (vma) of shard_map, in the types of operands and results.

All operands of an equation vary along the same axes. An operand that varies along fewer is first cast, by an equation
of its own (`hooks.cast_varying`), whose transpose sums over the missing axes. So the derivative with respect to a value
that all devices share is the sum of the devices' contributions, wherever it is taken.
"""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from xlamini.core.errors import ShardingTypeError
from xlamini.core.program.avals import NOWHERE, Avals, Params, ShapedArray, vma_of
from xlamini.core.program.jaxpr import Atom, Var
from xlamini.core.program.named_axes import divergent_axes, manual_axis
from xlamini.core.tracing.state import state

Axes = frozenset[Any]


def named_axes(primitive: Any, params: Params) -> Sequence[Any]:
    """The named axes that an equation refers to."""
    rule = primitive.sharding.named_axes
    return () if rule is None else rule(params)


def missing(primitive: Any, atoms: Sequence[Atom], params: Params) -> list[Axes] | None:
    """For each operand the axes along which it should vary too; None if nothing is missing."""
    if not state.axes or primitive.sharding.casts:
        return None
    named = named_axes(primitive, params)
    axes = frozenset(n for n in named if manual_axis(n) is not None) if named else NOWHERE
    vma = axes.union(*[a.aval.vma for a in atoms])
    if not vma:
        return None
    if primitive.higher_order:
        wanted: Sequence[Axes] = [aval.vma for aval in primitive.operand_avals(params)]
    else:
        wanted = [vma] * len(atoms)
    pairs = itertools.zip_longest(atoms, wanted, fillvalue=NOWHERE)
    found = [w - a.aval.vma if type(a) is Var else NOWHERE for a, w in pairs]
    if not any(found):
        return None
    _check_not_unreduced(primitive, atoms, found)
    return found


def divergent(aval: ShapedArray) -> ShapedArray:
    """The type of a result here: it varies along all axes along which only some devices run what is traced."""
    axes = divergent_axes() - aval.vma if state.axes else NOWHERE
    if axes and aval.explicit_sharding is not None:
        axes -= aval.explicit_sharding.unreduced
    return aval.varying(aval.vma | axes) if axes else aval


def _check_not_unreduced(primitive: Any, atoms: Sequence[Atom], axes: Sequence[Axes]) -> None:
    """ShardingTypeError for an operand to be cast along axes along which it is unreduced."""
    for atom, names in zip(atoms, axes, strict=False):
        split = atom.aval.explicit_sharding
        if names and split is not None and not names.isdisjoint(split.unreduced):
            raise ShardingTypeError(
                f"{primitive} of {atom.aval.str_short()}: an operand that is unreduced, a sum still to be taken, "
                "cannot vary too; take the sum first, with psum or psum_scatter"
            )


def result_types(primitive: Any, out: Any, avals: Avals, params: Params) -> Any:
    """What a shape rule gave, varying as the operands say."""
    rules = primitive.sharding
    if primitive.higher_order or rules.chooses_axes:
        return out
    vma = NOWHERE.union(*map(vma_of, avals))
    if rules.varying is not None:
        vma = rules.varying(vma, params)
    return [a.varying(vma) for a in out] if primitive.multiple_results else out.varying(vma)
