"""Padding of primitives with jaxprs: each jaxpr is padded, and takes the sizes as further operands."""
from __future__ import annotations

from typing import Any

from xlamini.core import Equation, Jaxpr, ShapedArray, literal
from xlamini.core.program.rewriting import rewritten_params
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives.elementwise.arithmetic import add
from xlamini.primitives.elementwise.comparison import lt
from xlamini.primitives.elementwise.select import select_n
from xlamini.transforms.buckets.padded_sizes import INT32, PaddedSizes


def higher_order(sizes: PaddedSizes, eqn: Equation, *operands: Any) -> Any:
    return eqn.primitive.bind(*operands, **rewritten_params(eqn, lambda jaxpr: padded_jaxpr(sizes, jaxpr)))


def padded_jaxpr(sizes: PaddedSizes, jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr of padded operands, which captures the sizes."""
    avals = [sizes.padded_type(a) for a in jaxpr.in_avals]
    return build(lambda *operands: sizes.run(jaxpr, operands), avals, jaxpr.name)[0]


def scan(sizes: PaddedSizes, eqn: Equation, *operands: Any) -> Any:
    """A scan whose length is padded counts its steps; those that are no data leave the carry as it is."""
    params = eqn.params
    length, consts, count = params["length"], params["num_consts"], params["num_carry"]
    if type(length) is not SymbolicSize:
        return higher_order(sizes, eqn, *operands)
    body, room, back = padded_jaxpr(sizes, params["jaxpr"]), sizes.room(length), params["reverse"]
    real = sizes.data(length)

    def step(*values: Any) -> list[Any]:
        at, rest = values[consts], [*values[:consts], *values[consts + 1 :]]
        outs = evaluate(body, rest)
        is_data = lt(at, real)
        carry = [select_n(is_data, old, new) for old, new in zip(rest[consts : consts + count], outs, strict=False)]
        return [add(at, literal(-1 if back else 1, INT32)), *carry, *outs[count:]]

    avals = [*body.in_avals[:consts], ShapedArray((), INT32), *body.in_avals[consts:]]
    counted, _ = build(step, avals, body.name)
    first = literal(room - 1 if back else 0, INT32)
    every = [*operands[:consts], first, *operands[consts:]]
    return eqn.primitive.bind(*every, **{**params, "jaxpr": counted, "length": room, "num_carry": count + 1})[1:]
