"""Residuals of linearize and partial evaluation of a `cond`, in slots that all branches share.

Both rewrites split every branch into two programs, and the first one passes residuals to the second. As only one branch
runs, the branches share slots: as many of a type as the branch with the most residuals of that type needs. A branch
fills its unused slots with zeros. A residual that is an operand or an output of the first program takes no slot.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core import Atom, Jaxpr, ShapedArray, Values
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.linearize import Linearized
from xlamini.interpreters.partial_eval import Parted
from xlamini.interpreters.residuals import Halves, narrow_residuals
from xlamini.primitives import wrap_p, zeros
from xlamini.transforms.cond.trace_branches import joined_avals, widen_inputs

Slot = tuple[ShapedArray, int]
"""The aval of a slot, and its index among the slots with this aval."""


class SplitBranches(NamedTuple):
    """The branches of two conds: inputs -> outputs, slots; residuals, further inputs -> further outputs.

    `sources` are the positions of the residuals among the inputs and results of the first cond.
    """

    first: tuple[Jaxpr, ...]
    second: tuple[Jaxpr, ...]
    sources: tuple[int, ...]
    num_slots: int

    def outs_and_residuals(self, inputs: Values, results: Values) -> tuple[list[Any], list[Any]]:
        """The outputs and the residuals, from the inputs and results of the first cond."""
        values = [*inputs, *results]
        return list(results[: len(results) - self.num_slots]), [values[i] for i in self.sources]


def split_linearized(parts: Sequence[Linearized]) -> SplitBranches:
    """The branches of the primal and tangent conds."""
    return _split([Halves(p.primal, p.tangent, p.sources) for p in parts], len(parts[0].nonzero_out))


def split_partial_eval(parts: Sequence[Parted]) -> SplitBranches:
    """The branches of the known and unknown conds."""
    unknown_out = parts[0].unknown_out
    return _split([Halves(p.known, p.unknown, p.sources) for p in parts], len(unknown_out) - sum(unknown_out))


class Slots(NamedTuple):
    """The slots of all branches, the slots of each, and the branches with an output for every slot."""

    slots: list[Slot]
    own: list[list[Slot]]
    padded: tuple[Jaxpr, ...]


def share_slots(branches: Sequence[Jaxpr], num_outs: int) -> Slots:
    """Slots for what each branch returns after its first `num_outs` outputs."""
    own = [_slots_of(branch.outvars[num_outs:]) for branch in branches]
    slots = list(dict.fromkeys(slot for each in own for slot in each))
    padded = tuple(_pad_slots(branch, num_outs, each, slots) for branch, each in zip(branches, own, strict=True))
    return Slots(slots, own, padded)


def _split(parts: Sequence[Halves], num_outs: int) -> SplitBranches:
    parts = [narrow_residuals(halves, num_outs) for halves in parts]
    firsts = [first for first, _, _ in parts]
    num_known = len(firsts[0].invars) + num_outs
    slots, new, padded = share_slots(firsts, num_outs)
    slot_sources = {slot: num_known + i for i, slot in enumerate(slots)}
    without_slot = {p for _, _, sources in parts for p in sources if p < num_known}
    common = [*sorted(without_slot), *slot_sources.values()]
    place = {source: i for i, source in enumerate(common)}
    known_avals = [*firsts[0].in_avals, *_out_avals(firsts, num_outs), *(aval for aval, _ in slots)]
    avals = [known_avals[source] for source in common]
    seconds = []
    for (_, second, sources), own in zip(parts, new, strict=True):
        shared = [p if p < num_known else slot_sources[own[p - num_known]] for p in sources]
        seconds.append(widen_inputs(second, avals, [place[source] for source in shared]))
    return SplitBranches(padded, tuple(seconds), tuple(common), len(slots))


def _out_avals(firsts: Sequence[Jaxpr], num_outs: int) -> list[ShapedArray]:
    return joined_avals([first.replace(outvars=first.outvars[:num_outs]) for first in firsts])


def _slots_of(residuals: Sequence[Atom]) -> list[Slot]:
    """The slot of each residual of one branch."""
    count: Counter[ShapedArray] = Counter()
    slots = []
    for atom in residuals:
        slots.append((atom.aval, count[atom.aval]))
        count[atom.aval] += 1
    return slots


def _pad_slots(first: Jaxpr, num_outs: int, own: Sequence[Slot], slots: Sequence[Slot]) -> Jaxpr:
    """The first program of a branch, with an output for every slot."""
    if list(own) == list(slots):
        return first

    def outputs(*operands: Any) -> list[Any]:
        results = evaluate(first, operands)
        have = dict(zip(own, results[num_outs:], strict=True))
        return [*results[:num_outs], *(have[s] if s in have else _slot_zeros(s[0]) for s in slots)]

    return build(outputs, first.in_avals, first.name)[0]


def _slot_zeros(aval: ShapedArray) -> Any:
    """The zeros that fill an unused slot."""
    if not hasattr(aval.dtype, "physical_shape"):
        return zeros(aval)
    words = ShapedArray((*aval.shape, *aval.dtype.physical_shape), aval.dtype.physical_dtype)
    return wrap_p.bind(zeros(words), impl=aval.dtype.generator)
