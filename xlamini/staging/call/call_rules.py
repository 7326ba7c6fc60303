"""The derivative rules of a call of a jaxpr; `run(jaxpr, operands) -> outputs` runs the rewritten jaxprs.

A call primitive passes a `run` that binds a call again; a rule that inlines the call passes `evaluate`.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import Jaxpr, Values, is_linear
from xlamini.interpreters.jvp import jvp
from xlamini.interpreters.linearize import linearize
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.interpreters.transpose import transpose
from xlamini.staging.call.higher_order import Mask, chosen, given, inverse, merged, nonzero_of, with_none, with_zeros

Run = Callable[[Jaxpr, Sequence[Any]], list[Any]]
Derivative = tuple[list[Any], list[Any]]


def call_jvp(run: Run, jaxpr: Jaxpr, primals: Values, tangents: Values) -> Derivative:
    """The outputs of a call and their tangents, by one run of the jvp."""
    both, nonzero_out = jvp(jaxpr, nonzero_of(tangents))
    outs = run(both, [*primals, *given(tangents)])
    count = len(nonzero_out)
    return outs[:count], with_zeros(jaxpr.out_avals, nonzero_out, outs[count:])


def call_linearize(run: Run, jaxpr: Jaxpr, primals: Values, tangents: Values) -> Derivative:
    """The outputs of a call and their tangents, by two runs: the second takes only residuals and tangents."""
    lin = linearize(jaxpr, nonzero_of(tangents))
    outs, residuals = lin.split_outputs(primals, run(lin.primal, primals))
    out_tangents = run(lin.tangent, [*residuals, *given(tangents)])
    return outs, with_zeros(jaxpr.out_avals, lin.nonzero_out, out_tangents)


def call_transpose(run: Run, jaxpr: Jaxpr, cts: Values, operands: Values) -> list[Any]:
    """The cotangents of a call's linear operands, and None for the other operands."""
    linear = tuple(map(is_linear, operands))
    backward, nonzero_out = transpose(jaxpr, linear, nonzero_of(cts))
    cts_in = run(backward, [*chosen(operands, inverse(linear)), *given(cts)])
    return with_none(linear, with_none(nonzero_out, cts_in))


def call_partial_eval(
    run: Run,
    jaxpr: Jaxpr,
    unknown: Sequence[bool],
    operands: Values,
    force: Mask = (),
    whole: Callable[[], list[Any]] | None = None,
) -> list[Any]:
    """The outputs of a call, by a run of its known and one of its unknown jaxpr.

    `force` marks outputs as unknown. If all are, `whole` binds the call as it is, where it is given.
    """
    halves = partial_eval(jaxpr, tuple(unknown), force)
    if whole is not None and all(halves.unknown_out):
        return whole()
    known = chosen(operands, inverse(unknown))
    outs, residuals = halves.split_outputs(known, run(halves.known, known))
    later = run(halves.unknown, [*residuals, *chosen(operands, unknown)])
    return merged(halves.unknown_out, later, outs)
