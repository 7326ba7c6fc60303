"""What the two halves of a scan's body pass from one to the other, and how.

A body parted in two returns residuals from its first half to its second. Of a scan, a residual that is a constant, or
depends on nothing else, is computed once, before the loop, and is a constant of the second scan. One that is a slice of
a stacked input or output is found there. Only what is left is stacked, each value once.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core.jaxpr import Atom, Jaxpr
from xlamini.core.rewriting import rewrite
from xlamini.core.tracer import build
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.linearize import linearize
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.staging.call.higher_order import Mask, chosen, inverse, until_stable
from xlamini.transforms.control_flow.carries import with_outputs_of
from xlamini.transforms.scan.rules import Parts, parts


class Counts(NamedTuple):
    """How many constants and carries the first half takes, how many outputs it has; and what the second half takes."""

    consts: int
    carry: int
    outs: int
    own_consts: int
    own_carry: int


class Halves(NamedTuple):
    """Two bodies, and what is computed before the loop.

    before: constants -> values that are the same in every step
    first:  some of these values and constants, carry, slices -> carry, slices of outputs, slices of what is stacked
    second: residuals that are always the same, own constants, own carry, residuals in slices, own slices -> own outputs

    `taken` and `fixed` say where the first inputs of both stand among the constants and the results of `before`;
    `slices` where the residuals in slices stand among the stacked inputs and all stacked outputs of `first`.
    """

    before: Jaxpr
    first: Jaxpr
    second: Jaxpr
    taken: tuple[int, ...]
    fixed: tuple[int, ...]
    slices: tuple[int, ...]

    def ahead(self, consts: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """What `first` takes instead of the constants, and the residuals that are always the same."""
        known = [*consts, *evaluate(self.before, consts)]
        return [known[i] for i in self.taken], [known[i] for i in self.fixed]

    def in_slices(self, xs: Sequence[Any], ys: Sequence[Any]) -> list[Any]:
        """The residuals that differ from step to step."""
        known = [*xs, *ys]
        return [known[i] for i in self.slices]


class Linear(NamedTuple):
    """The linearised body, and which carries and slices of outputs have a tangent."""

    halves: Halves
    carry: Mask
    ys: Mask


def linearized(body: Jaxpr, consts: Mask, carry: Mask, xs: Mask) -> Linear:
    """The body's values and tangents apart; the masks say which inputs have a tangent."""
    none = (False,) * (len(body.outvars) - len(carry))
    of_carry = until_stable(
        lambda marked: linearize(body, (*consts, *marked, *xs), (*marked, *none)).nonzero_out[: len(carry)], carry
    )
    lin = linearize(body, (*consts, *of_carry, *xs), (*of_carry, *none))
    counts = Counts(len(consts), len(carry), len(body.outvars), sum(consts), sum(of_carry))
    return Linear(halved(lin.primal, lin.tangent, lin.sources, counts), of_carry, lin.nonzero_out[len(carry) :])


class Parted(NamedTuple):
    """The body parted by what is known; the masks say which inputs and outputs are not."""

    halves: Halves
    unknown: Parts
    unknown_out: Mask

    def of_first(self, operands: Parts) -> Parts:
        """The operands that the known half takes."""
        return Parts(*(chosen(part, inverse(mask)) for part, mask in zip(operands, self.unknown, strict=True)))

    def of_second(self, operands: Parts) -> Parts:
        """The operands that the unknown half takes beside the residuals."""
        return Parts(*map(chosen, operands, self.unknown))


def parted(body: Jaxpr, consts: Mask, carry: Mask, xs: Mask) -> Parted:
    """The known and the unknown half of the body; a carry that is known at first need not stay so."""
    none = (False,) * (len(body.outvars) - len(carry))
    of_carry = until_stable(
        lambda marked: partial_eval(body, (*consts, *marked, *xs), (*marked, *none)).unknown_out[: len(carry)], carry
    )
    apart = partial_eval(body, (*consts, *of_carry, *xs), (*of_carry, *none))
    outs = len(apart.unknown_out) - sum(apart.unknown_out)
    counts = Counts(len(consts) - sum(consts), len(carry) - sum(of_carry), outs, sum(consts), sum(of_carry))
    halves = halved(apart.known, apart.unknown, apart.sources, counts)
    return Parted(halves, Parts(list(consts), list(of_carry), list(xs)), apart.unknown_out)


@rewrite
def halved(first: Jaxpr, second: Jaxpr, sources: tuple[int, ...], counts: Counts) -> Halves:
    """The halves as the bodies of two scans; `sources` says where each residual stands among inputs and results."""
    ahead = _ahead(first, counts)
    inputs = parts(ahead.loop.invars, len(ahead.taken), counts.carry)
    outputs = ahead.loop.outvars[: counts.outs]
    stacked = _Stacked(len(inputs.xs), outputs[counts.carry :])
    changing = iter(ahead.loop.outvars[counts.outs :])
    new = [next(changing) if place is None else place for place in ahead.places]
    found = [*range(counts.consts), *inputs.carry, *map(_Slice, range(len(inputs.xs))), *outputs, *new]
    places = [stacked.place(found[s]) for s in sources]
    loop = _in_types(ahead.loop.replace(outvars=[*outputs, *stacked.new]), inputs.carry)
    fixed = tuple(x for x in places if isinstance(x, int))
    slices = tuple(x.index for x in places if isinstance(x, _Slice))
    arranged_second = _taking(second, [isinstance(x, _Slice) for x in places], counts)
    return Halves(ahead.before, loop, arranged_second, ahead.taken, fixed, slices)


class _Slice(NamedTuple):
    """A residual among stacked inputs and outputs."""

    index: int


class _Stacked:
    """What is stacked: the slices of outputs, and further values as residuals need them."""

    def __init__(self, num_xs: int, ys: Sequence[Atom]):
        self.known: dict[Any, _Slice] = {}
        self.new: list[Atom] = []
        self.count = num_xs
        for atom in ys:
            self._add(atom)

    def place(self, found: Any) -> int | _Slice:
        """Where a residual is found: a number says where among what is always the same."""
        if isinstance(found, int | _Slice):
            return found
        if found not in self.known:
            self.new.append(found)
            self._add(found)
        return self.known[found]

    def _add(self, atom: Atom) -> None:
        self.known.setdefault(atom, _Slice(self.count))
        self.count += 1


class _Ahead(NamedTuple):
    """A body without what can be computed ahead of the loop; where each new residual that can be stands, else None."""

    before: Jaxpr
    loop: Jaxpr
    taken: tuple[int, ...]
    places: list[int | None]


def _ahead(first: Jaxpr, counts: Counts) -> _Ahead:
    """Take out what residuals that are always the same need; nothing if there are none."""
    new = len(first.outvars) - counts.outs
    if new and not first.effects:
        unknown = tuple(i >= counts.consts for i in range(len(first.invars)))
        halves = partial_eval(first, unknown, (True,) * counts.outs + (False,) * new)
        if not all(halves.unknown_out):
            numbers = iter(range(counts.consts, counts.consts + new))
            places = [None if u else next(numbers) for u in halves.unknown_out[counts.outs :]]
            return _Ahead(halves.known, halves.unknown, halves.sources, places)
    nothing, _ = build(lambda *consts: [], first.in_avals[: counts.consts])
    return _Ahead(nothing, first, tuple(range(counts.consts)), [None] * new)


def _taking(second: Jaxpr, in_slices: Sequence[bool], counts: Counts) -> Jaxpr:
    """The second half with its residuals at their places among constants and slices."""
    residuals, own = second.invars[: len(in_slices)], second.invars[len(in_slices) :]
    fixed = [v for v, in_slice in zip(residuals, in_slices, strict=True) if not in_slice]
    slices = [v for v, in_slice in zip(residuals, in_slices, strict=True) if in_slice]
    of_own = parts(own, counts.own_consts, counts.own_carry)
    return _in_types(second.replace(invars=Parts(fixed, [], slices).then(of_own).flat()), of_own.carry)


def _in_types(jaxpr: Jaxpr, carry: Sequence[Atom]) -> Jaxpr:
    """The jaxpr returning the carry in the types in which it is given."""
    return with_outputs_of(jaxpr, tuple(atom.aval for atom in carry))
