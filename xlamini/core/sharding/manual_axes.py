"""Varying manual axes (vma) of shard_map, in the types of operands and results.

All operands of an equation vary along the same axes. An operand that varies along fewer is first cast, by an equation
of its own (`hooks.cast_varying`), whose transpose sums over the missing axes. So the derivative with respect to a value
that all devices share is the sum of the devices' contributions, wherever it is taken.
"""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from xlamini.core.avals import NOWHERE, Avals, Params
from xlamini.core.errors import ShardingTypeError
from xlamini.core.jaxpr import Atom, Var
from xlamini.core.named_axes import manual_axis
from xlamini.core.primitive import IS_VMA_CAST
from xlamini.core.state import state

Axes = frozenset[Any]


def missing(primitive: Any, atoms: Sequence[Atom], params: Params) -> list[Axes] | None:
    """For each operand the axes along which it should vary too; None if nothing is missing."""
    if primitive.traits & IS_VMA_CAST or not state.axes:
        return None
    named = primitive.named_axes(params)
    axes = frozenset(n for n in named if manual_axis(n) is not None) if named else NOWHERE
    vma = axes.union(*[a.aval.vma for a in atoms])
    if not vma:
        return None
    if primitive.higher_order:
        wanted: Sequence[Axes] = [aval.vma for aval in primitive.operand_avals(params)]
    else:
        wanted = [vma] * len(atoms)
    pairs = list(itertools.zip_longest(atoms, wanted, fillvalue=NOWHERE))
    found = [w - a.aval.vma if type(a) is Var else NOWHERE for a, w in pairs]
    for (atom, _), axes in zip(pairs, found, strict=True):
        if axes and atom.aval.split is not None and not axes.isdisjoint(atom.aval.split.unreduced):
            raise ShardingTypeError(
                f"{primitive} of {atom.aval.str_short()}: an operand that is unreduced, a sum still to be taken, "
                "cannot vary too; take the sum first, with psum or psum_scatter"
            )
    return found if any(found) else None


def result_types(primitive: Any, out: Any, avals: Avals, params: Params) -> Any:
    """What a shape rule gave, varying as the operands say."""
    if primitive.higher_order:
        return out
    vma = primitive.varying(NOWHERE.union(*[a.vma for a in avals]), params)
    if vma is None:
        return out
    return [a.varying(vma) for a in out] if primitive.multiple_results else out.varying(vma)
