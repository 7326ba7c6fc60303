"""What the two halves of a scan's body pass from one to the other, and how.

A body parted in two returns residuals from its first half to its second. Of a scan, a residual that is a constant, or
depends on nothing else, is computed once, before the loop, and is a constant of the second scan. One that is a slice of
a stacked input or output is found there. Only what is left is stacked, each value once.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xlamini.core.jaxpr import Jaxpr
from xlamini.core.rewriting import rewrite
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.partial_eval import Parted, partial_eval
from xlamini.transforms.control_flow.scan_rules import Parts, arranged, parts

Bind = Callable[..., list[Any]]


class Shape(NamedTuple):
    """How many constants and carries the first half takes, how many outputs it has, and the same for the second."""

    consts: int
    carry: int
    outs: int
    second_consts: int
    second_carry: int


class Halves(NamedTuple):
    """Two bodies, and what comes before the first.

    before: constants -> residuals that are always the same, values that the first half takes instead of the constants
    first:  these, carry, slices -> carry, slices of outputs, slices of what is stacked
    second: residuals that are always the same, own constants, own carry, residuals in slices, own slices -> its outputs

    `fixed` says where the former residuals stand among the constants and the results of `before`, `taken` where the
    values do that `first` takes, and `slices` where the latter residuals stand among stacked inputs and outputs.
    """

    before: Jaxpr | None
    first: Jaxpr
    second: Jaxpr
    fixed: tuple[int, ...]
    taken: tuple[int, ...]
    slices: tuple[int, ...]
    stacked: int

    def hoisted(self, consts: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The constants of the first half, and the residuals that are always the same."""
        known = [*consts, *(evaluate(self.before, consts) if self.before is not None else ())]
        return [known[i] for i in self.taken], [known[i] for i in self.fixed]

    def stacked_residuals(self, xs: Sequence[Any], ys: Sequence[Any]) -> list[Any]:
        """The residuals in slices, from the stacked inputs and all stacked outputs of the first half."""
        known = [*xs, *ys]
        return [known[i] for i in self.slices]


@rewrite
def halved(first: Jaxpr, second: Jaxpr, sources: tuple[int, ...], shape: Shape) -> Halves:
    """The halves as bodies of two scans; `sources` says where each residual stands among inputs and results."""
    num_in = len(first.invars)
    hoist = _hoist(first, shape)
    place: dict[int, int] = {}
    consts, taken, loop = range(shape.consts), tuple(range(shape.consts)), first
    if hoist is not None:
        loop, taken = hoist.unknown, hoist.sources
        place = _places_of_hoisted(hoist, num_in + shape.outs)
    place.update((i, i) for i in consts)
    fixed = [place[s] for s in sources if s in place]
    atoms = [*first.invars, *first.outvars]
    return _stacking(loop, second, sources, shape, place, Halves(None if hoist is None else hoist.known, loop, second, tuple(fixed), taken, (), 0))
