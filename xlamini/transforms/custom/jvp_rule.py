"""Rules for forward mode that a user wrote, as jaxprs.

    (primals, nonzero tangents)  ->  (outputs, nonzero tangents of outputs)

A rule is traced when a derivative is first asked for; for a batched call its jaxpr is batched.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core import config
from xlamini.core.jaxpr import Jaxpr
from xlamini.core.named_axes import axes_here, named_axis
from xlamini.core.primitive import Axis
from xlamini.core.structure import RewriteRule
from xlamini.core.tracer import Tracer, build
from xlamini.interpreters.batch import batch
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.primitives.convert import convert
from xlamini.primitives.slice import index_in_dim
from xlamini.staging.call.call_rules import in_halves
from xlamini.staging.call.higher_order import Mask, given, nonzero_of, with_zeros
from xlamini.staging.trace.arguments import name_of
from xlamini.transforms.custom.rule_checks import RuleName


class Pushed(NamedTuple):
    """A rule as a jaxpr, and which outputs have a tangent."""

    jaxpr: Jaxpr
    nonzero_out: Mask


class JvpRule(RewriteRule):
    """A rule for forward mode. `traced(nonzero)` gives its jaxpr for tangents of the marked operands."""

    name: RuleName

    def __init__(self) -> None:
        self._known: dict[Any, Pushed] = {}

    def traced(self, nonzero: Mask) -> Pushed:
        key = nonzero, config.trace_context_key(), axes_here()
        found = self._known.get(key)
        if found is None:
            found = self._traced(nonzero)
            if not any(type(x) is Tracer for x in found.jaxpr.consts):
                self._known[key] = found
        return found

    def _traced(self, nonzero: Mask) -> Pushed:
        raise NotImplementedError

    def pushed(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The outputs and their tangents."""
        jaxpr, nonzero_out = self.traced(nonzero_of(tangents))
        flat = evaluate(jaxpr, _typed(jaxpr, [*primals, *given(tangents)]))
        count = len(nonzero_out)
        return flat[:count], with_zeros(jaxpr.out_avals[:count], nonzero_out, flat[count:])

    def linearized(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The same under a `TangentBuilder`; ValueError if an output depends on a tangent."""
        jaxpr, nonzero_out = self.traced(nonzero_of(tangents))
        count, slopes = len(nonzero_out), given(tangents)
        unknown = (False,) * len(primals) + (True,) * len(slopes)
        force = (False,) * count + (True,) * sum(nonzero_out)
        self._check_known(partial_eval(jaxpr, unknown, force).unknown_out[:count])
        flat = in_halves(evaluate, jaxpr, unknown, _typed(jaxpr, [*primals, *slopes]), force)
        return flat[:count], with_zeros(jaxpr.out_avals[:count], nonzero_out, flat[count:])

    def _check_known(self, unknown: Sequence[bool]) -> None:
        if any(unknown):
            raise ValueError(
                f"{self.name}: the primal output that it returns depends on a tangent, so that reverse mode cannot "
                "compute it; compute it from the primals alone"
            )

    def batched(self, axis: Axis, dims: Sequence[int | None], out_batched: Mask | None = None) -> BatchedJvp:
        """The rule of the batched function; outputs (those in `out_batched`) and tangents have the batch at 0."""
        return BatchedJvp(self, axis, tuple(dims), out_batched)

    def __repr__(self) -> str:
        return name_of(self.name.rule)


def _typed(jaxpr: Jaxpr, operands: Sequence[Any]) -> list[Any]:
    """Operands with the weak types of the jaxpr's inputs."""
    return [convert(x, v.aval.dtype, v.aval.weak_type) for x, v in zip(operands, jaxpr.invars, strict=True)]


class BatchedJvp(JvpRule):
    """The rule for operands with batch dimensions at `dims`; a tangent has its own where its primal has it."""

    def __init__(self, rule: JvpRule, axis: Axis, dims: Sequence[int | None], out_batched: Mask | None):
        super().__init__()
        self.rule, self.axis, self.dims, self.name = rule, axis, tuple(dims), rule.name
        self.out_batched = out_batched

    def _traced(self, nonzero: Mask) -> Pushed:
        with named_axis(self.axis):
            single, nonzero_out = self.rule.traced(nonzero)
        dims = (*self.dims, *(d for d, nz in zip(self.dims, nonzero, strict=True) if nz))
        count = len(nonzero_out)
        force = (*(self.out_batched or (True,) * count), *(True,) * sum(nonzero_out))
        batched, found = batch(single, self.axis, dims, force)
        wrong = [d is not None and not f for d, f in zip(found, force, strict=True)]
        return Pushed(_with_first(batched, wrong, found) if any(wrong) else batched, nonzero_out)


def _with_first(jaxpr: Jaxpr, places: Sequence[bool], dims: Sequence[int | None]) -> Jaxpr:
    """The jaxpr with the first example of outputs that are the same for all examples, though computed for each."""

    def flat(*operands: Any) -> list[Any]:
        outs = evaluate(jaxpr, operands)
        return [index_in_dim(x, 0, d or 0, False) if p else x for x, p, d in zip(outs, places, dims, strict=True)]

    return build(flat, jaxpr.in_avals, jaxpr.name)[0]
