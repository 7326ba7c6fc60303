"""A checked scan: the carry of its body has the error of the iterations so far, and it takes their number."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Jaxpr, Params, ShapedArray, rewrite
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.check import Checked, Errors, check
from xlamini.interpreters.error_values import (
    NOTHING,
    ErrorLoop,
    ErrorPart,
    empty_error,
    merge_first,
    with_common_types,
    with_turn,
)
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives import broadcasted_iota
from xlamini.transforms.control_flow.carries import with_outputs_of
from xlamini.transforms.scan.rules import ScanParts

_INT32 = ShapedArray((), np.dtype(np.int32))


def checked_scan(run: Callable[..., list[Any]], errors: Errors, operands: ScanParts, params: Params) -> Any:
    """The results and the error; `run(body, operands, params)` binds a scan."""
    made = checked_body(params["jaxpr"], params["num_consts"], params["num_carry"], errors)
    if not made.error.sites:
        return run(made.body, operands, params), NOTHING
    carry = [*operands.carry, *empty_error(made.error).values]
    turns = broadcasted_iota(_INT32.dtype, (params["length"],), 0)
    outs = run(made.body, ScanParts(operands.consts, carry, [turns, *operands.xs]), params)
    count, end = len(operands.carry), len(carry)
    return [*outs[:count], *outs[end:]], made.error.rebuilt(outs[count:end]).within(ErrorLoop("iteration"))


class CheckedBody(NamedTuple):
    """A body: consts, carry, error, number of the iteration, xs -> carry, error, ys."""

    body: Jaxpr
    error: ErrorPart


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
        outs, found = made.split_outputs(evaluate(made.jaxpr, [*operands[:split], *xs]))
        after = with_common_types(merge_first(error.rebuilt(before), with_common_types(with_turn(found, turn))))
        return [*outs[:num_carry], *after.values, *outs[num_carry:]]

    avals = [*body.in_avals[:split], *error.types, _INT32, *body.in_avals[split:]]
    result, _ = build(iteration, avals, body.name)
    return CheckedBody(with_outputs_of(result, tuple(avals[num_consts : split + count])), error)


def error_of_turn(made: Checked) -> ErrorPart:
    """The error of one turn of a loop, with types for values."""
    error: Any = None

    def turned(turn: Any, *values: Any) -> list[Any]:
        nonlocal error
        error = with_common_types(with_turn(made.error.rebuilt(values), turn))
        return error.values

    result, _ = build(turned, [_INT32, *made.error.types], "error")
    return error.of_types(result.out_avals)
