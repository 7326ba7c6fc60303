"""The body of a checked while loop: its carry has the number of the iteration, and the error of those before.

An iteration checks the condition and then the body. The condition's last value, which ends the loop, is checked after
the loop. In a batched loop an example that is finished never fails: the body runs on the carry of another one instead.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Jaxpr, Params, ShapedArray, aval_of, rewrite
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.check import Checked, Errors, check
from xlamini.interpreters.error_values import (
    NOTHING,
    ErrorLoop,
    ErrorPart,
    empty_error,
    merge_first,
    merged,
    number,
    of_active,
    of_any,
    with_common_types,
    with_turn,
)
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives import add
from xlamini.primitives.reductions.reductions import reduce_max
from xlamini.staging.call.check import without_checks
from xlamini.transforms.control_flow.carries import with_outputs_of
from xlamini.transforms.control_flow.predicated_lanes import replace_idle
from xlamini.transforms.while_loop.rules import LoopParts, widen_cond

_INT32 = np.dtype(np.int32)


def checked_while(run: Callable[..., list[Any]], errors: Errors, operands: LoopParts, params: Params) -> Any:
    """The results and the error; `run(cond, body, operands, params)` binds a loop."""
    cond, body = params["cond_jaxpr"], params["body_jaxpr"]
    made = checked_loop(cond, body, params["cond_nconsts"], params["body_nconsts"], errors)
    if not made.error.sites:
        return run(made.cond.jaxpr, made.body, operands, params), NOTHING
    carry = made.start(operands.carry)
    holds = widen_cond(without_checks(cond), tuple(map(aval_of, carry[len(operands.carry) :])))
    outs = run(holds, made.body, LoopParts(operands.cond, [*operands.cond, *operands.body], carry), params)
    results, error = made.split_outputs(operands, outs)
    return results, error.within(ErrorLoop("iteration"))


class CheckedLoop(NamedTuple):
    """A body: consts of the condition, own consts, carry, number, error -> carry, number, error."""

    cond: Checked
    body: Jaxpr
    error: ErrorPart
    lanes: tuple[int, ...]

    def start(self, carry: Sequence[Any]) -> list[Any]:
        """The carry before the first iteration."""
        turn = empty_error(self.error, self.lanes).code
        return [*carry, turn, *empty_error(self.error, self.lanes).values]

    def split_outputs(self, operands: LoopParts, outs: Sequence[Any]) -> tuple[list[Any], ErrorPart]:
        """The loop's results and its error, with that of the condition's last value."""
        count = len(operands.carry)
        carry, turn, error = list(outs[:count]), outs[count], self.error.rebuilt(outs[count + 1 :])
        error = of_any(error, self.lanes)
        if self.cond.error.sites:
            _, last = self.cond.split_outputs(evaluate(self.cond.jaxpr, [*operands.cond, *carry]))
            error = merged([error, with_turn(last, _latest(turn, self.lanes))])
        return carry, error


def _latest(turn: Any, lanes: Sequence[int]) -> Any:
    return reduce_max(turn, range(len(lanes))) if lanes else turn


@rewrite
def checked_loop(cond: Jaxpr, body: Jaxpr, cond_nconsts: int, body_nconsts: int, errors: Errors) -> CheckedLoop:
    """The checked loop; `error` without sites says that it cannot fail."""
    of_cond, of_body = check(cond, errors), check(body, errors)
    lanes = cond.out_avals[0].shape
    if not (of_cond.error.sites or of_body.error.sites):
        return CheckedLoop(of_cond, of_body.jaxpr, NOTHING, lanes)
    num_consts, count = cond_nconsts + body_nconsts, len(body.outvars)
    error: Any = None

    def checked(consts: Sequence[Any], carry: Sequence[Any], turn: Any) -> tuple[list[Any], ErrorPart]:
        of_holds, own = consts[:cond_nconsts], consts[cond_nconsts:]
        going: Any = None
        if lanes:
            (going,) = evaluate(cond, [*of_holds, *carry])
            carry = [replace_idle(going, x) for x in carry]
        _, first = of_cond.split_outputs(evaluate(of_cond.jaxpr, [*of_holds, *carry]))
        outs, second = of_body.split_outputs(evaluate(of_body.jaxpr, [*own, *carry]))
        found = merged([first, second])
        return outs, with_common_types(with_turn(of_active(found, going) if lanes else found, turn))

    def typed(*operands: Any) -> list[Any]:
        nonlocal error
        _, error = checked(operands[:num_consts], operands[num_consts:], number(0))
        return error.values

    avals = [*cond.in_avals[:cond_nconsts], *body.in_avals]
    types = build(typed, avals, body.name)[0].out_avals
    error = error.of_types(types)

    def iteration(*operands: Any) -> list[Any]:
        consts, (*carry, turn) = operands[:num_consts], operands[num_consts : num_consts + count + 1]
        before = error.rebuilt(operands[num_consts + count + 1 :])
        outs, found = checked(consts, carry, _latest(turn, lanes))
        after = with_common_types(merge_first(before, with_common_types(found, lanes)), ())
        return [*outs, add(turn, number(1)), *after.values]

    lane = ShapedArray(lanes, _INT32)
    types = [ShapedArray((*lanes, *a.shape), a.dtype, vma=a.vma) for a in types]
    turn = lane.varying(types[0].vma)
    result, _ = build(iteration, [*avals, turn, *types], body.name)
    return CheckedLoop(of_cond, with_outputs_of(result, (*body.out_avals, turn, *types)), error, lanes)
