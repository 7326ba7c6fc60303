"""What the two halves of several branches pass from one to the other.

A branch parted in two returns residuals from its first half to its second. As one branch runs, the residuals of all
share slots: there are as many of a type as the branch with the most of them needs, and a branch fills up with zeros
those that it does not need. What is an operand or an output of the first half already takes no slot.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core.avals import ShapedArray
from xlamini.core.jaxpr import Atom, Jaxpr
from xlamini.core.tracer import build
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.linearize import Linearized
from xlamini.interpreters.partial_eval import Parted
from xlamini.primitives.random_keys import wrap_p
from xlamini.primitives.tangent_ops import zeros
from xlamini.transforms.cond.branches import joined_avals, taking

Slot = tuple[ShapedArray, int]
"""A type, and a number among the slots of this type."""


class Halves(NamedTuple):
    """Branches in two halves: inputs -> outputs and slots; residuals and further inputs -> further outputs.

    `sources` says where each residual stands among the inputs and results of the first halves.
    """

    first: tuple[Jaxpr, ...]
    second: tuple[Jaxpr, ...]
    sources: tuple[int, ...]
    num_slots: int

    def parted(self, inputs: Sequence[Any], results: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The outputs and the residuals, from the inputs and results of the first half."""
        known = [*inputs, *results]
        return list(results[: len(results) - self.num_slots]), [known[i] for i in self.sources]


def of_linearized(parts: Sequence[Linearized]) -> Halves:
    """The branches' primal and tangent programs."""
    return _shared([(p.primal, p.tangent, p.sources) for p in parts], len(parts[0].nonzero_out))


def of_parted(parts: Sequence[Parted]) -> Halves:
    """The branches' known and unknown programs."""
    unknown_out = parts[0].unknown_out
    return _shared([(p.known, p.unknown, p.sources) for p in parts], len(unknown_out) - sum(unknown_out))


def _shared(parts: Sequence[tuple[Jaxpr, Jaxpr, Sequence[int]]], num_outs: int) -> Halves:
    firsts = [first for first, _, _ in parts]
    num_known = len(firsts[0].invars) + num_outs
    new = [_slots_of(first.outvars[num_outs:]) for first in firsts]
    slots = list(dict.fromkeys(slot for own in new for slot in own))
    slot_sources = {slot: num_known + i for i, slot in enumerate(slots)}
    found = {p for _, _, sources in parts for p in sources if p < num_known}
    common = [*sorted(found), *slot_sources.values()]
    place = {source: i for i, source in enumerate(common)}
    known_avals = [*firsts[0].in_avals, *_out_avals(firsts, num_outs), *(aval for aval, _ in slots)]
    avals = [known_avals[source] for source in common]
    seconds = []
    for (_, second, sources), own in zip(parts, new, strict=True):
        shared = [p if p < num_known else slot_sources[own[p - num_known]] for p in sources]
        seconds.append(taking(second, avals, [place[source] for source in shared]))
    filled = [_filled(first, num_outs, own, slots) for first, own in zip(firsts, new, strict=True)]
    return Halves(tuple(filled), tuple(seconds), tuple(common), len(slots))


def _out_avals(firsts: Sequence[Jaxpr], num_outs: int) -> list[ShapedArray]:
    return joined_avals([first.replace(outvars=first.outvars[:num_outs]) for first in firsts])


def _slots_of(residuals: Sequence[Atom]) -> list[Slot]:
    """The slot of each residual of one branch."""
    count: Counter[ShapedArray] = Counter()
    found = []
    for atom in residuals:
        found.append((atom.aval, count[atom.aval]))
        count[atom.aval] += 1
    return found


def _filled(first: Jaxpr, num_outs: int, own: Sequence[Slot], slots: Sequence[Slot]) -> Jaxpr:
    """The first half of a branch, returning something for every slot."""
    if list(own) == list(slots):
        return first

    def outputs(*operands: Any) -> list[Any]:
        results = evaluate(first, operands)
        have = dict(zip(own, results[num_outs:], strict=True))
        return [*results[:num_outs], *(have[s] if s in have else _nothing(s[0]) for s in slots)]

    return build(outputs, first.in_avals, first.name)[0]


def _nothing(aval: ShapedArray) -> Any:
    """What stands in a slot that is not needed."""
    if not hasattr(aval.dtype, "physical_shape"):
        return zeros(aval)
    words = ShapedArray((*aval.shape, *aval.dtype.physical_shape), aval.dtype.physical_dtype)
    return wrap_p.bind(zeros(words), impl=aval.dtype.generator)
