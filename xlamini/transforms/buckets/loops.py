"""Padding of primitives with jaxprs: each jaxpr is padded, and takes the sizes as further operands."""
from __future__ import annotations

from typing import Any, NamedTuple

from xlamini.core import Equation, Jaxpr, aval_of, literal
from xlamini.core.program.rewriting import rewritten_params
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives import zeros
from xlamini.primitives.elementwise.arithmetic import add, sub
from xlamini.primitives.elementwise.comparison import lt
from xlamini.primitives.indexing.dynamic_slice import dynamic_index_in_dim
from xlamini.primitives.indexing.dynamic_update_slice import dynamic_update_index_in_dim
from xlamini.transforms.buckets.padded_sizes import INT32, PaddedSizes
from xlamini.transforms.scan.rules import parts
from xlamini.transforms.while_loop.primitive import while_p


def higher_order(sizes: PaddedSizes, eqn: Equation, *operands: Any) -> Any:
    return eqn.primitive.bind(*operands, **rewritten_params(eqn, lambda jaxpr: padded_jaxpr(sizes, jaxpr)))


def padded_jaxpr(sizes: PaddedSizes, jaxpr: Jaxpr, fill: Any = None) -> Jaxpr:
    """The jaxpr of padded operands, which captures the sizes; with `fill` results have it in place of padding."""

    def padded(*operands: Any) -> list[Any]:
        outs = sizes.run(jaxpr, operands)
        if fill is None:
            return outs
        return [sizes.masked(x, a, range(a.ndim), fill) for x, a in zip(outs, jaxpr.out_avals, strict=True)]

    return build(padded, [sizes.padded_type(a) for a in jaxpr.in_avals], jaxpr.name)[0]


def while_loop(sizes: PaddedSizes, eqn: Equation, *operands: Any) -> Any:
    """A loop over lanes goes on while the condition holds for one of those that are data."""
    condition = eqn.params["cond_jaxpr"]
    padded = rewritten_params(eqn, lambda j: padded_jaxpr(sizes, j, False if j is condition else None))
    return eqn.primitive.bind(*operands, **padded)


def scan(sizes: PaddedSizes, eqn: Equation, *operands: Any) -> Any:
    """A scan whose length is padded is a loop of as many steps as there are data; derivatives have been taken."""
    params, length = eqn.params, eqn.params["length"]
    if type(length) is not SymbolicSize:
        return higher_order(sizes, eqn, *operands)
    given, steps = parts(operands, params["num_consts"], params["num_carry"]), sizes.data(length)
    counts = len(given.consts), len(given.carry), len(given.xs)
    body = ScanBody(padded_jaxpr(sizes, params["jaxpr"]), *counts, params["reverse"])
    stacks = [zeros(sizes.padded_type(v.aval)) for v in eqn.outvars[len(given.carry) :]]
    state = [literal(0, INT32), *given.carry, *stacks]
    types, of_state = [aval_of(x) for x in (steps, *given.consts, *given.xs)], [aval_of(x) for x in state]
    outs = while_p.bind(
        steps, steps, *given.consts, *given.xs, *state,
        cond_jaxpr=build(lambda steps, at, *rest: [lt(at, steps)], [types[0], *of_state], body.jaxpr.name)[0],
        body_jaxpr=build(body.step, [*types, *of_state], body.jaxpr.name)[0],
        cond_nconsts=1, body_nconsts=len(types),
    )  # fmt: skip
    return outs[1:]


class ScanBody(NamedTuple):
    """The body of a scan, and how many of its operands are consts, carry and slices."""

    jaxpr: Jaxpr
    num_consts: int
    num_carry: int
    num_xs: int
    reverse: bool

    def step(self, steps: Any, *values: Any) -> list[Any]:
        """A step of the loop for the scan's consts and xs, and for its counter, carry and ys."""
        consts, xs, (at, *state) = parts(values, self.num_consts, self.num_xs)
        carry, ys = state[: self.num_carry], state[self.num_carry :]
        row = sub(sub(steps, literal(1, INT32)), at) if self.reverse else at
        outs = evaluate(self.jaxpr, [*consts, *carry, *(dynamic_index_in_dim(x, row, 0, keepdims=False) for x in xs)])
        written = [
            dynamic_update_index_in_dim(y, out, row, 0) for y, out in zip(ys, outs[self.num_carry :], strict=True)
        ]
        return [add(at, literal(1, INT32)), *outs[: self.num_carry], *written]
