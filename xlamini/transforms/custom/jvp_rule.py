"""Rules for forward mode as jaxprs.

    (primals, nonzero tangents)  ->  (outputs, nonzero tangents of outputs)

The user's rule is traced when a derivative is first taken; the rule of a batched call is its batched jaxpr.
"""
from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from xlamini.core import Avals, Axis, Dims, Jaxpr, OwnedMemo, Tracer, Values, is_differentiable, named_axis
from xlamini.core.flags import config
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.batch import batch
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.primitives import index_in_dim
from xlamini.staging import Mask, chosen, given, inverse, merged, nonzero_of, with_zeros
from xlamini.staging.call.call_rules import call_partial_eval
from xlamini.staging.call.higher_order import tangents_of
from xlamini.transforms.custom.call_site import CallSite, CustomRule, weakly_typed_as
from xlamini.transforms.custom.rule_contract import Contract
from xlamini.transforms.custom.rule_finite_differences import check_jvp_rule
from xlamini.transforms.custom.symbolic_zero import zero_tangent

Outputs = tuple[list[Any], list[Any]]


class Jvp(NamedTuple):
    """A rule as a jaxpr, and which outputs have a nonzero tangent."""

    jaxpr: Jaxpr
    nonzero_out: Mask


rules: Final = OwnedMemo("jaxpr: custom derivative rules", None, "jaxprs")


class JvpRule(CustomRule):
    """The param `jvp` of a call."""

    def __init__(self, contract: Contract) -> None:
        self.contract = contract
        self.jaxprs: dict[Any, Jvp] = {}

    def traced(self, nonzero: Mask) -> Jvp:
        """The rule for tangents of the operands in `nonzero`."""
        key = nonzero, config.trace_context_key(), state.axes
        rule = self.traced_early(nonzero) or self.jaxprs.get(key)
        if rule is None:
            rule = self.traced_anew(nonzero)
            if not any(type(x) is Tracer for x in rule.jaxpr.consts):
                rules.keep(self, key, rule)
        return rule

    def traced_anew(self, nonzero: Mask) -> Jvp:
        raise NotImplementedError

    def pushed(self, primals: Values, tangents: Values) -> Outputs:
        """The outputs and their tangents."""
        jaxpr, nonzero_out = self.traced(nonzero_of(tangents))
        flat = evaluate(jaxpr, weakly_typed_as(jaxpr, [*primals, *given(tangents)]))
        return _outputs(jaxpr, nonzero_out, flat)

    def linearized(self, primals: Values, tangents: Values) -> Outputs:
        """The outputs and tangents under a `TangentBuilder`; ValueError if an output depends on a tangent."""
        jaxpr, nonzero_out = self.traced(nonzero_of(tangents))
        count, slopes = len(nonzero_out), given(tangents)
        unknown = (False,) * len(primals) + (True,) * len(slopes)
        force = (False,) * count + (True,) * sum(nonzero_out)
        if any(partial_eval(jaxpr, unknown, force).unknown_out[:count]):
            raise ValueError(
                f"{self.contract}: the primal output that it returns depends on a tangent, so that reverse mode cannot "
                "compute it; compute it from the primals alone"
            )
        flat = call_partial_eval(evaluate, jaxpr, unknown, weakly_typed_as(jaxpr, [*primals, *slopes]), force)
        return _outputs(jaxpr, nonzero_out, flat)


def _outputs(jaxpr: Jaxpr, nonzero_out: Mask, flat: Values) -> Outputs:
    count = len(nonzero_out)
    return list(flat[:count]), with_zeros(jaxpr.out_avals[:count], nonzero_out, flat[count:])


class UserJvp(JvpRule):
    """The user's rule at one call. Its operands are the values it closes over, then the call's arguments."""

    site: CallSite
    symbolic_zeros: bool

    def __init__(self, contract: Contract, symbolic_zeros: bool, site: CallSite):
        super().__init__(contract)
        self.symbolic_zeros, self.site = symbolic_zeros, site

    def traced_anew(self, nonzero: Mask) -> Jvp:
        site, contract, nonzero_out = self.site, self.contract, []
        count = len(site.types.in_avals)

        def flat(closed: Values, inputs: Values) -> list[Any]:
            primals, tangents = inputs[:count], self._tangents(nonzero, inputs[count:])
            result = contract.rule(*site.before(site.types.args(primals), site.types.args(tangents)))
            outs, out_tangents = contract.jvp(result)
            nonzero_out.extend(t is not None for t in out_tangents)
            return [*outs, *(t for t in out_tangents if t is not None)]

        avals, names = [*site.avals, *tangents_of(site.avals, nonzero)], site.names(contract)
        names += [f"tangent of {name}" for name in chosen(names, nonzero)]
        jaxpr = site.trace(contract, flat, avals, site.concrete(), names)
        if site.debugged is not None:
            check_jvp_rule(contract, site, jaxpr, nonzero, tuple(nonzero_out))
        return Jvp(jaxpr, tuple(nonzero_out))

    def _tangents(self, nonzero: Mask, tangents: Values) -> list[Any]:
        """A tangent for every argument; those of what the rule closes over are not passed to it."""
        first = len(self.site.closed)
        marks = nonzero[first:]
        zeros = [zero_tangent(a, self.symbolic_zeros) for a in chosen(self.site.types.in_avals, inverse(marks))]
        return merged(marks, tangents[sum(nonzero[:first]) :], zeros)


class BatchedJvp(JvpRule):
    """The rule for operands with batch dimensions `dims`; a tangent has the batch dimension of its primal.

    Outputs in `out_batched` (None: all), and their tangents, have their batch dimension at 0.
    """

    axis: Axis
    dims: tuple[int | None, ...]
    out_batched: Mask | None
    rule: JvpRule

    def __init__(self, rule: JvpRule, axis: Axis, dims: Dims, out_batched: Mask | None = None):
        super().__init__(rule.contract)
        self.rule, self.axis, self.dims, self.out_batched = rule, axis, tuple(dims), out_batched

    def traced_anew(self, nonzero: Mask) -> Jvp:
        with named_axis(self.axis):
            single, nonzero_out = self.rule.traced(nonzero)
        dims = (*self.dims, *chosen(self.dims, nonzero))
        marks = self.out_batched or (True,) * len(nonzero_out)
        force = (*marks, *chosen(marks, nonzero_out))
        return Jvp(batched_as(single, self.axis, dims, force), nonzero_out)


def batched_tangents(rule: JvpRule, axis: Axis, dims: Dims, avals: Avals) -> list[bool] | None:
    """For each output whether its tangent is batched where those of all operands are.

    A rule may call the function itself; for such a call it is None, or this would not end. So it is for a rule that
    refuses tangents of all operands.
    """
    if _asked.inside:
        return None
    nonzero = tuple(map(is_differentiable, avals))
    _asked.inside = True
    try:
        with named_axis(axis):
            single, nonzero_out = rule.traced(nonzero)
        count = len(nonzero_out)
        tangents, used = dce(single, (False,) * count + (True,) * sum(nonzero_out))
        _, out_dims = batch(tangents, axis, tuple(chosen((*dims, *chosen(dims, nonzero)), used)))
    except Exception:
        return None
    finally:
        _asked.inside = False
    found = iter(out_dims)
    return [has_tangent and next(found) is not None for has_tangent in nonzero_out]


class _Asked(threading.local):
    inside = False


_asked = _Asked()


def batched_as(jaxpr: Jaxpr, axis: Axis, dims: Dims, marks: Sequence[bool]) -> Jaxpr:
    """The jaxpr of a rule, batched; just the outputs in `marks` have a batch dimension, at 0."""
    batched, out_dims = batch(jaxpr, axis, dims, tuple(marks))
    shared = [d is not None and not m for d, m in zip(out_dims, marks, strict=True)]
    return _first_examples(batched, shared, out_dims) if any(shared) else batched


def _first_examples(jaxpr: Jaxpr, shared: Sequence[bool], dims: Dims) -> Jaxpr:
    """The jaxpr with one example of the outputs in `shared`, which are equal for all, though computed for each."""

    def flat(*operands: Any) -> list[Any]:
        outs = evaluate(jaxpr, operands)
        return [index_in_dim(x, 0, d or 0, False) if s else x for x, s, d in zip(outs, shared, dims, strict=True)]

    return build(flat, jaxpr.in_avals, jaxpr.name)[0]
