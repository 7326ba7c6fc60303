"""Cut a parted program: what its first half keeps, what its second half computes again.

    first: inputs -> (outputs, residuals)   second: (residuals, own inputs) -> its outputs

become halves between which less is kept: of what the first half computes only those values cross that the policy lets
be saved. The second half makes the residuals again, from these and from the inputs.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xlamini.core.jaxpr import Jaxpr, close_over
from xlamini.core.rewriting import rewrite
from xlamini.core.tracer import build
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.residuals import found_at
from xlamini.transforms.higher_order import chosen

Policy = Callable[..., Any]


class Cut(NamedTuple):
    """`first` returns the outputs and then what is saved besides; `second` takes the kept values first.

    `sources` says for each kept value where it stands among the inputs and results of `first`.
    """

    first: Jaxpr
    second: Jaxpr
    count: int
    sources: tuple[int, ...]

    def parted(self, inputs: Sequence[Any], results: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The outputs and the kept values, from the inputs and results of `first`."""
        return list(results[: self.count]), found_at(self.sources, inputs, results)


@rewrite
def cut(first: Jaxpr, second: Jaxpr, count: int, sources: tuple[int, ...], policy: Policy | None) -> Cut:
    """The halves cut anew; `first` has `count` outputs, and `sources` says where the residuals stand."""
    slim, _ = dce(first, tuple(i < count for i in range(len(first.outvars))), True)
    inputs = len(first.invars)

    def again(*operands: Any) -> list[Any]:
        known, own = operands[:inputs], operands[inputs:]
        residuals = found_at(sources, known, evaluate(first, known))
        return evaluate(second, [*residuals, *own])

    own = second.in_avals[len(sources) :]
    jaxpr, _ = build(again, [*first.in_avals, *own], second.name)
    whole = jaxpr.replace(outvars=[*jaxpr.outvars, *jaxpr.invars[inputs:]])
    needed, used = dce(whole, (True,) * len(whole.outvars))
    needed = needed.replace(outvars=needed.outvars[: len(jaxpr.outvars)])
    return Cut(slim, close_over(needed), count, tuple(chosen(range(inputs), used[:inputs])))
