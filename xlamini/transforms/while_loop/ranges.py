"""Loops over a range of integers, whose bounds are known at run time, among `while` loops: those of `fori_loop`.

A kernel writes them as `scf.for`, because Triton copies the next iteration's blocks in such loops only.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core import Equation, Jaxpr
from xlamini.core.program.jaxpr import Literal
from xlamini.primitives import add, lt


class Counter(NamedTuple):
    """The places in the carry of the integer that counts, by ones, and of the bound that it stays below."""

    index: int
    stop: int


def counter_of(cond: Jaxpr, body: Jaxpr, consts: int) -> Counter | None:
    """The counter of a loop over a range; None for another loop. The body's first `consts` inputs are no carry."""
    if len(cond.eqns) != 1 or cond.eqns[0].primitive is not lt or cond.outvars != cond.eqns[0].outvars:
        return None
    places = [_place(x, cond.invars) for x in cond.eqns[0].invars]
    if None in places or body.in_avals[consts + places[0]].dtype.kind != "i":
        return None
    found, carry = Counter(*places), body.invars[consts:]
    is_range = body.outvars[found.stop] is carry[found.stop] and _is_next(body, carry[found.index], found.index)
    return found if is_range else None


def _place(x: Any, among: Sequence[Any]) -> Any:
    return next((i for i, y in enumerate(among) if x is y), None)


def _is_next(body: Jaxpr, counter: Any, index: int) -> bool:
    """Whether the body's result at `index` is the counter and 1."""
    return any(eqn.outvars[0] is body.outvars[index] and _adds_one(eqn, counter) for eqn in body.eqns if eqn.outvars)


def _adds_one(eqn: Equation, counter: Any) -> bool:
    if eqn.primitive is not add or eqn.invars[0] is not counter:
        return False
    one = eqn.invars[1]
    return isinstance(one, Literal) and one.val == 1
