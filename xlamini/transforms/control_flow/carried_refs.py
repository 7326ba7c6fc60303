"""The body of a loop on refs, by their values."""
from __future__ import annotations

from xlamini.core import Jaxpr, rewrite
from xlamini.interpreters.discharge import of_values
from xlamini.staging import Mask, chosen, inverse
from xlamini.transforms.control_flow.carries import with_outputs_of


@rewrite
def carrying_refs(body: Jaxpr, num_consts: int) -> tuple[Jaxpr, Mask]:
    """The body of values, with the refs that it writes as its first carries; a mask of these among the consts."""
    values, changes = of_values(body)
    consts, changes = values.invars[:num_consts], changes[:num_consts]
    written = chosen(consts, changes)
    ordered = values.replace(invars=[*chosen(consts, inverse(changes)), *written, *values.invars[num_consts:]])
    return with_outputs_of(ordered, tuple(v.aval for v in written)), changes
