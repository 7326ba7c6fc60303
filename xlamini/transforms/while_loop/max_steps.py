"""A loop that ends after a number of turns at the latest; so it has derivatives in reverse mode.

As long as nothing differentiates it, it is a `while` with a counter. Its linearisation is made of blocks, about as many
as each has steps. A block keeps the carry that it starts from, and is computed again on the way back: so the memory
grows with the square root of the number of turns. A step runs the body if the loop still goes on, else it does nothing,
and a block does nothing at all when the loop is over.

In a batched loop some examples are done while others go on. Those that are done run the body too, and drop what it
gives. They run it on the last carry for which the condition held (or, if it never did, on that of another example),
because the body may have no derivative elsewhere, and zero times infinity would spoil the sum over the examples.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core.avals import ShapedArray
from xlamini.core.jaxpr import Jaxpr
from xlamini.core.rewriting import rewrite
from xlamini.core.tangents import is_differentiable, is_linear
from xlamini.core.tracer import aval_of, build
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.primitives.arg_extrema import argmax
from xlamini.primitives.convert import convert
from xlamini.primitives.dynamic_slice import dynamic_index_in_dim
from xlamini.primitives.identity import stop_gradient_p
from xlamini.primitives.reductions import reduce_or
from xlamini.primitives.select import select_n
from xlamini.primitives.shape import broadcast_in_dim, reshape
from xlamini.staging.call.call_rules import linearized, transposed
from xlamini.staging.call.higher_order import chosen, inverse, with_none
from xlamini.transforms.cond.primitive import cond_p
from xlamini.transforms.remat.checkpoint import checkpoint_p
from xlamini.transforms.scan.primitive import scan_p
from xlamini.transforms.while_loop.lowering import lowered
from xlamini.transforms.while_loop.primitive import While
from xlamini.transforms.while_loop.rules import parts

_INT32 = np.dtype(np.int32)


class BoundedWhile(While):
    """A `while` of at most `max_steps` turns."""

    name = "bounded_while"

    def transpose(self, cts: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        """Of a loop that is linear in some operands: what is known is computed again, step by step."""
        linear = tuple(map(is_linear, operands))
        halves = partial_eval(_in_blocks(params), linear)
        known = chosen(operands, inverse(linear))
        _, residuals = halves.parted(known, evaluate(halves.known, known))
        later = [*residuals, *chosen(operands, linear)]
        found = transposed(evaluate, halves.unknown, chosen(cts, halves.unknown_out), later)
        return with_none(linear, found[len(residuals) :])

    def lower(self, ctx: Any, *operands: Any, max_steps: int, **params: Any) -> Any:
        return lowered(ctx, params["cond_jaxpr"], params["body_jaxpr"], self._parts(operands, params), max_steps)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        if not any(self._nonzero(tangents, params)):
            return self._without_tangents(primals, params)
        return linearized(evaluate, _in_blocks(params), primals, tangents)


bounded_while_p = BoundedWhile()


def _in_blocks(params: dict[str, Any]) -> Jaxpr:
    nums = params["cond_nconsts"], params["body_nconsts"]
    return in_blocks(params["body_jaxpr"], params["cond_jaxpr"], *nums, params["max_steps"])


@rewrite
def in_blocks(body: Jaxpr, cond: Jaxpr, cond_nconsts: int, body_nconsts: int, max_steps: int) -> Jaxpr:
    """The loop with the same operands and results, as blocks of steps."""
    size = max(math.isqrt(max_steps), 1)
    count, rest = divmod(max_steps, size)

    def blocks(*operands: Any) -> list[Any]:
        given_ = parts(operands, cond_nconsts, body_nconsts)
        consts = [*given_.cond, *given_.body]
        (going,) = evaluate(cond, [*given_.cond, *given_.carry])
        last = [_of_one_that_goes_on(going, x) for x in given_.carry] if cond.out_avals[0].ndim else []
        state = [going, *given_.carry, *last]
        avals = [aval_of(x) for x in (*consts, *state)]
        step = _step(body, cond, cond_nconsts, body_nconsts, avals)
        block = _block(step, len(consts), size, avals)
        state = _scanned(block, consts, state, count)
        if rest:
            state = evaluate(_block(step, len(consts), rest, avals), [*consts, *state])
        return state[1 : 1 + len(given_.carry)]

    return build(blocks, [*cond.in_avals[:cond_nconsts], *body.in_avals], body.name)[0]


def _scanned(jaxpr: Jaxpr, consts: Sequence[Any], state: Sequence[Any], length: int) -> list[Any]:
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


def _block(step: Jaxpr, num_consts: int, size: int, avals: Sequence[ShapedArray]) -> Jaxpr:
    """Some steps, computed again on the way back; none if the loop is over.

    Like what is computed again it says `differentiated`: then derivatives of derivatives keep no more of its way forth.
    """

    def steps(*operands: Any) -> list[Any]:
        return _scanned(step, operands[:num_consts], operands[num_consts:], size)

    def run(*operands: Any) -> list[Any]:
        return _if_going(operands[num_consts], build(steps, avals)[0], num_consts, operands)

    def checkpointed(*operands: Any) -> list[Any]:
        jaxpr, _ = build(run, avals, "block")
        return checkpoint_p.bind(*operands, jaxpr=jaxpr, prevent_cse=False, differentiated=True, policy=None)

    return build(checkpointed, avals, "block")[0]


def _if_going(going: Any, jaxpr: Jaxpr, num_consts: int, operands: Sequence[Any]) -> list[Any]:
    """The state after this program, if the loop goes on for any example, else the state as it is."""
    dims = tuple(range(aval_of(going).ndim))
    index = convert(reduce_or(going, dims) if dims else going, _INT32)
    unchanged, _ = build(lambda *xs: xs[num_consts:], jaxpr.in_avals)
    return cond_p.bind(index, *operands, branches=(unchanged, jaxpr))


def _step(body: Jaxpr, cond: Jaxpr, cond_nconsts: int, body_nconsts: int, avals: Sequence[ShapedArray]) -> Jaxpr:
    """consts, whether to go on, carry (and the last one that went on, in a batched loop) -> the same afterwards."""
    num_consts, num_carry = cond_nconsts + body_nconsts, len(body.outvars)

    def after(consts: Sequence[Any], carry: Sequence[Any]) -> list[Any]:
        values = evaluate(body, [*consts[cond_nconsts:], *carry])
        return [*evaluate(cond, [*consts[:cond_nconsts], *values]), *values]

    def turn(*operands: Any) -> list[Any]:
        return after(operands[:num_consts], operands[num_consts + 1 :])

    def step(*operands: Any) -> list[Any]:
        return _if_going(operands[num_consts], build(turn, avals)[0], num_consts, operands)

    def batched_step(*operands: Any) -> list[Any]:
        consts, (going, *rest) = operands[:num_consts], operands[num_consts:]
        carry, last = rest[:num_carry], rest[num_carry:]
        last = [_where(going, x, _held(y)) for x, y in zip(carry, last, strict=True)]
        more, *values = after(consts, last)
        carry = [_where(going, x, y) for x, y in zip(values, carry, strict=True)]
        return [_where(going, more, going), *carry, *last]

    return build(batched_step if cond.out_avals[0].ndim else step, avals)[0]


def _of_one_that_goes_on(going: Any, x: Any) -> Any:
    """A carry with that of the first example that goes on in place of those that do not even start."""
    dims, shape = aval_of(going).shape, aval_of(x).shape
    if not math.prod(dims):
        return x
    first = argmax(reshape(convert(going, _INT32), (math.prod(dims),)), 0, _INT32)
    row = dynamic_index_in_dim(reshape(x, (math.prod(dims), *shape[len(dims) :])), first, 0, keepdims=False)
    return _where(going, x, broadcast_in_dim(row, shape, tuple(range(len(dims), len(shape)))))


def _where(going: Any, x: Any, y: Any) -> Any:
    if x is y:
        return x
    spread = broadcast_in_dim(going, aval_of(x).shape, tuple(range(aval_of(going).ndim)))
    return select_n(spread, y, x)


def _held(x: Any) -> Any:
    return stop_gradient_p(x) if is_differentiable(aval_of(x)) else x
