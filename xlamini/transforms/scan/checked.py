"""The body of a checked scan: its carry has the error of the iterations so far, and it takes their number."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Jaxpr, ShapedArray, rewrite
from xlamini.core.tracer import build
from xlamini.interpreters.check import Checked, Errors, check
from xlamini.interpreters.error_values import Part, alike, earlier, in_turn
from xlamini.interpreters.evaluate import evaluate
from xlamini.transforms.control_flow.carries import with_outputs_of

_INT32 = ShapedArray((), np.dtype(np.int32))


class CheckedBody(NamedTuple):
    """A body: consts, carry, error, number of the iteration, xs -> carry, error, ys."""

    body: Jaxpr
    error: Part


@rewrite
def checked_body(body: Jaxpr, num_consts: int, num_carry: int, errors: Errors) -> CheckedBody:
    """The checked body; one that cannot fail takes and returns what it did."""
    made = check(body, errors)
    if not made.error.sites:
        return CheckedBody(made.jaxpr, made.error)
    error = error_of_turn(made)
    split, count = num_consts + num_carry, len(error.values)

    def iteration(*operands: Any) -> list[Any]:
        before, turn, xs = operands[split : split + count], operands[split + count], operands[split + count + 1 :]
        outs, found = made.parted(evaluate(made.jaxpr, [*operands[:split], *xs]))
        after = alike(earlier(error.rebuilt(before), alike(in_turn(found, turn))))
        return [*outs[:num_carry], *after.values, *outs[num_carry:]]

    avals = [*body.in_avals[:split], *error.types, _INT32, *body.in_avals[split:]]
    result, _ = build(iteration, avals, body.name)
    return CheckedBody(with_outputs_of(result, tuple(avals[num_consts : split + count])), error)


def error_of_turn(made: Checked) -> Part:
    """The error of one turn of a loop, with types for values."""
    error: Any = None

    def turned(turn: Any, *values: Any) -> list[Any]:
        nonlocal error
        error = alike(in_turn(made.error.rebuilt(values), turn))
        return error.values

    result, _ = build(turned, [_INT32, *made.error.types], "error")
    return error.of_types(result.out_avals)
