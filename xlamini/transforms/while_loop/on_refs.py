"""A while loop whose jaxprs read and write refs, by their values: those that the body writes are carries."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core import Jaxpr, Var, rewrite
from xlamini.interpreters.discharge import discharge
from xlamini.staging import chosen, inverse
from xlamini.transforms.control_flow.carried_refs import carrying_refs
from xlamini.transforms.while_loop.rules import LoopParts


def discharged_while(
    run: Callable[..., list[Any]], cond: Jaxpr, body: Jaxpr, refs: LoopParts, operands: LoopParts
) -> tuple[list[Any], dict[Any, Any]]:
    """The results, and the new values by ref; `run(cond, body, operands)` binds a loop."""
    of_body, changes = carrying_refs(body, len(operands.body))
    written = chosen(refs.body, changes)
    places = tuple(written.index(ref) if ref in written else None for ref in refs.cond)
    holds = reading_carries(discharge(cond), places, tuple(ref.aval.inner_aval for ref in written))
    own = [x for x, place in zip(operands.cond, places, strict=True) if place is None]
    carry = [*chosen(operands.body, changes), *operands.carry]
    outs = run(holds, of_body, LoopParts(own, chosen(operands.body, inverse(changes)), carry))
    return outs[len(written) :], dict(zip(written, outs, strict=False))


@rewrite
def reading_carries(cond: Jaxpr, places: tuple[int | None, ...], avals: tuple[Any, ...]) -> Jaxpr:
    """The condition with further first carries of these types, and with those at `places` in place of its consts."""
    consts, added = cond.invars[: len(places)], [Var(aval) for aval in avals]
    for v, place in zip(consts, places, strict=True):
        if place is not None:
            added[place] = v
    own = [v for v, place in zip(consts, places, strict=True) if place is None]
    return cond.replace(invars=[*own, *added, *cond.invars[len(places) :]])
