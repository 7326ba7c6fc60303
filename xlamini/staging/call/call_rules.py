"""The derivative rules of a call of a jaxpr, for any way `run(jaxpr, operands) -> outputs` to run one.

A call runs the rewritten jaxprs as calls again. Where the inside of a call comes into the open, `evaluate` runs them.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.jaxpr import Jaxpr
from xlamini.core.tangents import is_linear
from xlamini.interpreters.jvp import jvp
from xlamini.interpreters.linearize import linearize
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.interpreters.transpose import transpose
from xlamini.staging.call.higher_order import Mask, chosen, given, inverse, merged, nonzero_of, with_none, with_zeros

Run = Callable[[Jaxpr, Sequence[Any]], list[Any]]
Derivative = tuple[list[Any], list[Any]]


def pushed(run: Run, jaxpr: Jaxpr, primals: Sequence[Any], tangents: Sequence[Any]) -> Derivative:
    """The outputs and their tangents."""
    both, nonzero_out = jvp(jaxpr, nonzero_of(tangents))
    outs = run(both, [*primals, *given(tangents)])
    count = len(nonzero_out)
    return outs[:count], with_zeros(jaxpr.out_avals, nonzero_out, outs[count:])


def linearized(run: Run, jaxpr: Jaxpr, primals: Sequence[Any], tangents: Sequence[Any]) -> Derivative:
    """The same in two runs, the second of which takes residuals and tangents alone."""
    lin = linearize(jaxpr, nonzero_of(tangents))
    outs, residuals = lin.parted(primals, run(lin.primal, primals))
    found = run(lin.tangent, [*residuals, *given(tangents)])
    return outs, with_zeros(jaxpr.out_avals, lin.nonzero_out, found)


def transposed(run: Run, jaxpr: Jaxpr, cts: Sequence[Any], operands: Sequence[Any]) -> list[Any]:
    """The cotangents of the linear operands, None for the others."""
    linear = tuple(map(is_linear, operands))
    backward, nonzero_out = transpose(jaxpr, linear, nonzero_of(cts))
    found = run(backward, [*chosen(operands, inverse(linear)), *given(cts)])
    return with_none(linear, with_none(nonzero_out, found))


def in_halves(
    run: Run, jaxpr: Jaxpr, unknown: Sequence[bool], operands: Sequence[Any], force: Mask = ()
) -> list[Any]:
    """The outputs, by a run of what is known and one of the rest; `force` marks outputs for the latter."""
    halves = partial_eval(jaxpr, tuple(unknown), force)
    known = chosen(operands, inverse(unknown))
    outs, residuals = halves.parted(known, run(halves.known, known))
    later = run(halves.unknown, [*residuals, *chosen(operands, unknown)])
    return merged(halves.unknown_out, later, outs)
