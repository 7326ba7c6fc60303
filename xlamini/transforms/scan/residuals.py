"""Residuals of linearize and partial evaluation of a scan: hoisted, shared or stacked.

Both rewrites split a scan into two, and the first one passes residuals to the second. A loop-invariant residual is
hoisted: it is computed once, before the loop, and becomes a const of the second scan. A residual that is a slice of an
x or y is read from that array. Only the remaining residuals are stacked, each value once, because every stacked
residual costs memory proportional to the trip count.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core import Atom, Jaxpr, Values, rewrite
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.linearize import linearize
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.interpreters.residuals import Halves, narrow_residuals
from xlamini.staging import Mask, chosen, inverse
from xlamini.staging.call.higher_order import until_stable
from xlamini.transforms.control_flow.carries import with_outputs_of
from xlamini.transforms.scan.rules import ScanParts, parts


class Counts(NamedTuple):
    """Numbers of consts, carries and outputs of the first body, and of the second body's own consts and carries."""

    consts: int
    carry: int
    outs: int
    own_consts: int
    own_carry: int


class SplitBody(NamedTuple):
    """The bodies of two scans, and the loop-invariant program that runs before both.

    before: consts -> loop-invariant values
    first:  some consts and loop-invariant values, carry, x slices -> carry, y slices, slices of stacked residuals
    second: loop-invariant residuals, own consts, own carry, stacked residuals, own x slices -> own outputs

    `taken` and `fixed` are the positions of the leading inputs of `first` and `second` among the consts and the results
    of `before`; `slices` are the positions of the stacked residuals among the xs and all ys of `first`.
    """

    before: Jaxpr
    first: Jaxpr
    second: Jaxpr
    taken: tuple[int, ...]
    fixed: tuple[int, ...]
    slices: tuple[int, ...]

    def hoisted(self, consts: Values) -> tuple[list[Any], list[Any]]:
        """Run `before`: the consts of `first`, and the loop-invariant residuals."""
        values = [*consts, *evaluate(self.before, consts)]
        return [values[i] for i in self.taken], [values[i] for i in self.fixed]

    def stacked_residuals(self, xs: Values, ys: Values) -> list[Any]:
        """The residuals that differ between iterations."""
        values = [*xs, *ys]
        return [values[i] for i in self.slices]


class LinearizedBody(NamedTuple):
    """The primal and tangent bodies, and masks of the carries and ys whose tangents are nonzero."""

    split: SplitBody
    carry: Mask
    ys: Mask


def linearize_body(body: Jaxpr, consts: Mask, carry: Mask, xs: Mask) -> LinearizedBody:
    """Linearize the body of a scan; the masks mark the inputs with nonzero tangents."""
    none = (False,) * (len(body.outvars) - len(carry))
    of_carry = until_stable(
        lambda marked: linearize(body, (*consts, *marked, *xs), (*marked, *none)).nonzero_out[: len(carry)], carry
    )
    lin = linearize(body, (*consts, *of_carry, *xs), (*of_carry, *none))
    counts = Counts(len(consts), len(carry), len(body.outvars), sum(consts), sum(of_carry))
    split = split_body(lin.primal, lin.tangent, lin.sources, counts)
    return LinearizedBody(split, of_carry, lin.nonzero_out[len(carry) :])


class PartialEvalBody(NamedTuple):
    """The known and unknown bodies, and masks of the unknown inputs and outputs."""

    split: SplitBody
    unknown: ScanParts
    unknown_out: Mask

    def known_operands(self, operands: ScanParts) -> ScanParts:
        """The operands of the known scan."""
        return ScanParts(*(chosen(part, inverse(mask)) for part, mask in zip(operands, self.unknown, strict=True)))

    def unknown_operands(self, operands: ScanParts) -> ScanParts:
        """The operands of the unknown scan, without the residuals."""
        return ScanParts(*map(chosen, operands, self.unknown))


def partial_eval_body(body: Jaxpr, consts: Mask, carry: Mask, xs: Mask) -> PartialEvalBody:
    """Partially evaluate the body of a scan; a carry with a known initial value may become unknown in the loop."""
    none = (False,) * (len(body.outvars) - len(carry))
    of_carry = until_stable(
        lambda marked: partial_eval(body, (*consts, *marked, *xs), (*marked, *none)).unknown_out[: len(carry)], carry
    )
    partial = partial_eval(body, (*consts, *of_carry, *xs), (*of_carry, *none))
    outs = len(partial.unknown_out) - sum(partial.unknown_out)
    counts = Counts(len(consts) - sum(consts), len(carry) - sum(of_carry), outs, sum(consts), sum(of_carry))
    split = split_body(partial.known, partial.unknown, partial.sources, counts)
    return PartialEvalBody(split, ScanParts(list(consts), list(of_carry), list(xs)), partial.unknown_out)


@rewrite
def split_body(first: Jaxpr, second: Jaxpr, sources: tuple[int, ...], counts: Counts) -> SplitBody:
    """The bodies of two scans from two programs; `sources` are the residuals' positions among inputs and results."""
    first, second, sources = narrow_residuals(Halves(first, second, sources), counts.outs)
    hoisted = _hoist(first, counts)
    inputs = parts(hoisted.loop.invars, len(hoisted.taken), counts.carry)
    outputs = hoisted.loop.outvars[: counts.outs]
    stacked = _Stacked(len(inputs.xs), outputs[counts.carry :])
    changing = iter(hoisted.loop.outvars[counts.outs :])
    new = [next(changing) if place is None else place for place in hoisted.places]
    available = [*range(counts.consts), *inputs.carry, *map(_Slice, range(len(inputs.xs))), *outputs, *new]
    places = [stacked.place(available[s]) for s in sources]
    loop = _in_types(hoisted.loop.replace(outvars=[*outputs, *stacked.new]), inputs.carry)
    fixed = tuple(x for x in places if isinstance(x, int))
    slices = tuple(x.index for x in places if isinstance(x, _Slice))
    reordered = _reorder_inputs(second, [isinstance(x, _Slice) for x in places], counts)
    return SplitBody(hoisted.before, loop, reordered, hoisted.taken, fixed, slices)


class _Slice(NamedTuple):
    """The position of a stacked residual among the xs and ys of the first scan."""

    index: int


class _Stacked:
    """The stacked outputs of the first scan: its ys, and further values that residuals need."""

    def __init__(self, num_xs: int, ys: Sequence[Atom]):
        self.slices: dict[Any, _Slice] = {}
        self.new: list[Atom] = []
        self.count = num_xs
        for atom in ys:
            self._add(atom)

    def place(self, residual: Any) -> int | _Slice:
        """The position of a residual: an int among the loop-invariant values, a `_Slice` among stacked ones."""
        if isinstance(residual, int | _Slice):
            return residual
        if residual not in self.slices:
            self.new.append(residual)
            self._add(residual)
        return self.slices[residual]

    def _add(self, atom: Atom) -> None:
        self.slices.setdefault(atom, _Slice(self.count))
        self.count += 1


class _Hoisted(NamedTuple):
    """A body without its hoisted equations; `places` are the positions of hoisted new residuals, None for others."""

    before: Jaxpr
    loop: Jaxpr
    taken: tuple[int, ...]
    places: list[int | None]


def _hoist(first: Jaxpr, counts: Counts) -> _Hoisted:
    """Hoist the equations of loop-invariant residuals out of the loop, by partial evaluation with known consts."""
    new = len(first.outvars) - counts.outs
    if new and not first.effects:
        unknown = tuple(i >= counts.consts for i in range(len(first.invars)))
        partial = partial_eval(first, unknown, (True,) * counts.outs + (False,) * new)
        if not all(partial.unknown_out):
            numbers = iter(range(counts.consts, counts.consts + new))
            places = [None if u else next(numbers) for u in partial.unknown_out[counts.outs :]]
            return _Hoisted(partial.known, partial.unknown, partial.sources, places)
    empty, _ = build(lambda *consts: [], first.in_avals[: counts.consts])
    return _Hoisted(empty, first, tuple(range(counts.consts)), [None] * new)


def _reorder_inputs(second: Jaxpr, in_slices: Sequence[bool], counts: Counts) -> Jaxpr:
    """The second body with loop-invariant residuals before its consts and stacked residuals before its x slices."""
    residuals, own = second.invars[: len(in_slices)], second.invars[len(in_slices) :]
    fixed = [v for v, in_slice in zip(residuals, in_slices, strict=True) if not in_slice]
    slices = [v for v, in_slice in zip(residuals, in_slices, strict=True) if in_slice]
    of_own = parts(own, counts.own_consts, counts.own_carry)
    return _in_types(second.replace(invars=ScanParts(fixed, [], slices).then(of_own).flat()), of_own.carry)


def _in_types(jaxpr: Jaxpr, carry: Sequence[Atom]) -> Jaxpr:
    """The jaxpr with its output carry converted to the types of its input carry."""
    return with_outputs_of(jaxpr, tuple(atom.aval for atom in carry))
