"""The primitive `bounded_while`: a while loop with a static bound on its trip count, and so a reverse-mode derivative.

Its lowering is a `while` with a step counter. Its linearization is a scan over about sqrt(max_steps) checkpointed
blocks of about sqrt(max_steps) steps. A block stores its initial carry and is recomputed in the backward pass, so
memory grows with the square root of `max_steps`. A step runs the body in a `cond` on the predicate, and a block that
starts after the end of the loop runs nothing.

In a batched loop some examples are done while others continue. The body runs on the finished examples too, and a select
discards the result. They pass the body the last carry for which their condition was true (or, if there was none, the
carry of another example), because the body may have no finite derivative at their final carry, and zero times infinity
would make the sum over the examples NaN.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from xlamini.core import Avals, Jaxpr, Params, Values, aval_of, is_differentiable, is_linear, rewrite
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.primitives import convert, reduce_or
from xlamini.primitives.placement.identity import stop_gradient_p
from xlamini.staging import chosen, inverse, with_none
from xlamini.staging.call.call_rules import call_linearize, call_transpose
from xlamini.transforms.cond.primitive import cond_p
from xlamini.transforms.control_flow.predicated_lanes import replace_idle, select_lanes
from xlamini.transforms.remat.checkpoint import checkpoint_p
from xlamini.transforms.scan.primitive import scan_p
from xlamini.transforms.while_loop.lowering import lower_while
from xlamini.transforms.while_loop.primitive import While
from xlamini.transforms.while_loop.rules import parts

_INT32 = np.dtype(np.int32)


class BoundedWhile(While):
    """A `while` loop of at most `max_steps` iterations."""

    name = "bounded_while"
    carries_lanes = False
    """A block of the derivative stores its initial carry, so carries must be few."""

    def transpose(self, cts: Values, *operands: Any, **params: Any) -> Values:
        """The transpose of a loop that is linear in some operands: recompute the known values, then transpose."""
        linear = tuple(map(is_linear, operands))
        halves = partial_eval(_in_blocks(params), linear)
        known = chosen(operands, inverse(linear))
        _, residuals = halves.split_outputs(known, evaluate(halves.known, known))
        inputs = [*residuals, *chosen(operands, linear)]
        cts_in = call_transpose(evaluate, halves.unknown, chosen(cts, halves.unknown_out), inputs)
        return with_none(linear, cts_in[len(residuals) :])

    def lower(self, ctx: Any, *operands: Any, max_steps: int, **params: Any) -> Any:
        return lower_while(ctx, params["cond_jaxpr"], params["body_jaxpr"], self._parts(operands, params), max_steps)

    def linearize(self, primals: Values, tangents: Values, **params: Any) -> Any:
        if not any(self._nonzero(tangents, params)):
            return self._without_tangents(primals, params)
        return call_linearize(evaluate, _in_blocks(params), primals, tangents)


bounded_while_p: Final = BoundedWhile()


def _in_blocks(params: Params) -> Jaxpr:
    nums = params["cond_nconsts"], params["body_nconsts"]
    return in_blocks(params["body_jaxpr"], params["cond_jaxpr"], *nums, params["max_steps"])


@rewrite
def in_blocks(body: Jaxpr, cond: Jaxpr, cond_nconsts: int, body_nconsts: int, max_steps: int) -> Jaxpr:
    """The loop as a scan over checkpointed blocks of steps, with unchanged operands and results."""
    size = max(math.isqrt(max_steps), 1)
    count, rest = divmod(max_steps, size)

    def blocks(*operands: Any) -> list[Any]:
        inputs = parts(operands, cond_nconsts, body_nconsts)
        consts = [*inputs.cond, *inputs.body]
        (going,) = evaluate(cond, [*inputs.cond, *inputs.carry])
        last = [replace_idle(going, x) for x in inputs.carry] if cond.out_avals[0].ndim else []
        state = [going, *inputs.carry, *last]
        avals = [aval_of(x) for x in (*consts, *state)]
        step = _step(body, cond, cond_nconsts, body_nconsts, avals)
        block = _block(step, len(consts), size, avals)
        state = _bind_scan(block, consts, state, count)
        if rest:
            state = evaluate(_block(step, len(consts), rest, avals), [*consts, *state])
        return state[1 : 1 + len(inputs.carry)]

    return build(blocks, [*cond.in_avals[:cond_nconsts], *body.in_avals], body.name)[0]


def _bind_scan(jaxpr: Jaxpr, consts: Values, state: Sequence[Any], length: int) -> list[Any]:
    return scan_p.bind(
        *consts,
        *state,
        jaxpr=jaxpr,
        length=length,
        reverse=False,
        unroll=1,
        num_consts=len(consts),
        num_carry=len(state),
    )


def _block(step: Jaxpr, num_consts: int, size: int, avals: Avals) -> Jaxpr:
    """A checkpointed block of `size` steps; it runs nothing if the loop is over.

    `differentiated` marks it as a recomputation, so that higher derivatives do not store residuals of its forward pass.
    """

    def steps(*operands: Any) -> list[Any]:
        return _bind_scan(step, operands[:num_consts], operands[num_consts:], size)

    def run(*operands: Any) -> list[Any]:
        return _if_going(operands[num_consts], build(steps, avals)[0], num_consts, operands)

    def checkpointed(*operands: Any) -> list[Any]:
        jaxpr, _ = build(run, avals, "block")
        return checkpoint_p.bind(*operands, jaxpr=jaxpr, prevent_cse=False, differentiated=True, policy=None)

    return build(checkpointed, avals, "block")[0]


def _if_going(going: Any, jaxpr: Jaxpr, num_consts: int, operands: Values) -> list[Any]:
    """The state after `jaxpr` if the loop continues for any example, else the unchanged state."""
    dims = tuple(range(aval_of(going).ndim))
    index = convert(reduce_or(going, dims) if dims else going, _INT32)
    unchanged, _ = build(lambda *xs: xs[num_consts:], jaxpr.in_avals)
    return cond_p.bind(index, *operands, branches=(unchanged, jaxpr))


def _step(body: Jaxpr, cond: Jaxpr, cond_nconsts: int, body_nconsts: int, avals: Avals) -> Jaxpr:
    """One step: consts, predicate, carry -> predicate, carry.

    The state of a batched loop has a second carry: the last one for which the predicate was true.
    """
    num_consts, num_carry = cond_nconsts + body_nconsts, len(body.outvars)

    def after(consts: Values, carry: Values) -> list[Any]:
        values = evaluate(body, [*consts[cond_nconsts:], *carry])
        return [*evaluate(cond, [*consts[:cond_nconsts], *values]), *values]

    def iteration(*operands: Any) -> list[Any]:
        return after(operands[:num_consts], operands[num_consts + 1 :])

    def step(*operands: Any) -> list[Any]:
        return _if_going(operands[num_consts], build(iteration, avals)[0], num_consts, operands)

    def batched_step(*operands: Any) -> list[Any]:
        consts, (going, *rest) = operands[:num_consts], operands[num_consts:]
        carry, last = rest[:num_carry], rest[num_carry:]
        last = [select_lanes(going, x, _stop_gradient(y)) for x, y in zip(carry, last, strict=True)]
        more, *values = after(consts, last)
        carry = [select_lanes(going, x, y) for x, y in zip(values, carry, strict=True)]
        return [select_lanes(going, more, going), *carry, *last]

    return build(batched_step if cond.out_avals[0].ndim else step, avals)[0]


def _stop_gradient(x: Any) -> Any:
    return stop_gradient_p(x) if is_differentiable(aval_of(x)) else x
