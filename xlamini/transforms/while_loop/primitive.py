"""The primitive `while`: a loop with a condition jaxpr and a body jaxpr, and an unknown trip count.

Its operands are the consts of the condition, the consts of the body, and the carry. The predicate of a batched loop is
an array, and all its carries have the predicate's dimensions in front. Such a loop runs while any element of the
predicate is true, and does not update the carry where the predicate is false.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from xlamini.core import Avals, Axis, Dims, Jaxpr, Params, ShapedArray, Values, aval_of, close_over, is_linear, is_zero
from xlamini.core.program.checks import Checks
from xlamini.core.program.effects import more_than_observing
from xlamini.core.program.key_uses import KeyUses
from xlamini.core.program.primitive import RunBody
from xlamini.core.program.ref_types import AbstractRef
from xlamini.core.tracing.concretization import value_of
from xlamini.core.tracing.state import state
from xlamini.interpreters.key_reuse import key_uses, uses_of_loop
from xlamini.primitives import instantiated, with_batch_first
from xlamini.staging import HigherOrder, Mask, chosen, given, inverse, nonzero_of, with_zeros
from xlamini.staging.call.higher_order import plain_types
from xlamini.transforms.control_flow.strip_prints import silent
from xlamini.transforms.while_loop.lowering import lower_while
from xlamini.transforms.while_loop.on_refs import discharged_while
from xlamini.transforms.while_loop.rules import (
    LoopParts,
    batch_jaxprs,
    jvp_body,
    lanes_as_carry,
    live_operands,
    parts,
    prune,
    unknown_carries,
    widen_cond,
)


def _key_uses(eqn: Any) -> KeyUses:
    condition, body = eqn.params["cond_jaxpr"], eqn.params["body_jaxpr"]
    skipped, consts = eqn.params["cond_nconsts"], eqn.params["body_nconsts"]
    uses = uses_of_loop(eqn, body, consts, len(body.invars) - consts, skipped)
    return uses._replace(reuses=(*uses.reuses, *key_uses(condition).reuses))


class While(HigherOrder):
    """The while loop; its rules copy the params that they do not name (such as `max_steps`) to the loops they bind."""

    name = "while"
    checks: Checks = Checks(key_uses=_key_uses)
    jaxpr_names: Mapping[str, str] = {"cond_jaxpr": "cond", "body_jaxpr": "body"}
    carries_lanes = True
    """Whether a batched loop carries the consts that differ between its lanes."""
    unknown_trips = True

    def operand_avals(self, params: Params) -> Avals:
        return [*params["cond_jaxpr"].in_avals[: params["cond_nconsts"]], *params["body_jaxpr"].in_avals]

    def shape_rule(
        self,
        *avals: ShapedArray,
        body_jaxpr: Jaxpr,
        body_nconsts: int,
        cond_jaxpr: Jaxpr,
        cond_nconsts: int,
        **params: Any,
    ) -> list[ShapedArray]:
        operands = parts(avals, cond_nconsts, body_nconsts)
        carry = body_jaxpr.in_avals[body_nconsts:]
        _check_types("what the body returns", body_jaxpr.out_avals, carry)
        _check_types("what the condition takes", cond_jaxpr.in_avals[cond_nconsts:], carry)
        expected = plain_types([*cond_jaxpr.in_avals[:cond_nconsts], *body_jaxpr.in_avals])
        if plain_types(avals) != expected:
            raise TypeError(f"{self.name}: its operands are {list(avals)}, but its jaxprs take {expected}")
        predicate = cond_jaxpr.out_avals[0]
        if predicate.dtype != np.bool_ or any(a.shape[: predicate.ndim] != predicate.shape for a in operands.carry):
            raise TypeError(f"{self.name}: the predicate {predicate} does not fit the carry {operands.carry}")
        return carry

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        nonzero = self._nonzero(tangents, params)
        if not (any(nonzero) or any(type(aval_of(t)) is AbstractRef for t in tangents if not is_zero(t))):
            return self._without_tangents(primals, params)
        outs = self.outs_and_tangents(primals, tangents, params)
        count = len(nonzero)
        return outs[:count], with_zeros(_carry_avals(params), nonzero, outs[count:])

    def discharge(self, refs: Sequence[Any], operands: Values, **params: Any) -> Any:
        def run(cond: Jaxpr, body: Jaxpr, parts: LoopParts) -> list[Any]:
            return self._loop(cond, body, parts, params)

        jaxprs = params["cond_jaxpr"], params["body_jaxpr"]
        return discharged_while(run, *jaxprs, self._parts(refs, params), self._parts(operands, params))

    def widened(self, ins: Sequence[int], outs: Sequence[int], params: Params) -> Params:
        counts = parts(ins, params["cond_nconsts"], params["body_nconsts"])
        return {**params, "cond_nconsts": sum(counts.cond), "body_nconsts": sum(counts.body)}

    def transpose(self, cts: Values, *operands: Any, **params: Any) -> Values:
        live, _, _ = self.dce([not is_zero(ct) for ct in cts], params)
        if not any(is_linear(x) for x in chosen(operands, live)):
            return [None] * len(operands)
        assert state.builder is not None
        made_by = state.builder.provenance
        where = f" at {made_by.source}" if made_by is not None else ""
        raise ValueError(
            "Reverse-mode differentiation does not work for lax.while_loop or lax.fori_loop with dynamic start/stop "
            f"values{where}: it needs the values of every iteration, and the trip count is unknown while tracing. "
            "Bound it with while_loop(..., max_steps=N), use fori_loop with bounds that are Python ints, or scan; "
            "forward mode (jvp, jacfwd) works as it is"
        )

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        values, at = self._parts(operands, params), self._parts(dims, params)
        made = batch_jaxprs(params["cond_jaxpr"], params["body_jaxpr"], axis, at)
        if made.cond.out_avals[0].ndim:
            _check_repeatable(params, "a batched condition under vmap")
            is_first = not params["cond_jaxpr"].out_avals[0].ndim
            if self.carries_lanes and is_first and any(d is not None for d in (*at.cond, *at.body)):
                return self._with_lanes_as_carry(axis, values, at, params)
        carry = with_batch_first(values.carry, at.carry, axis.size, made.carry)
        outs = self._loop(made.cond, made.body, values._replace(carry=carry), params)
        return outs, [0 if marked else None for marked in made.carry]

    def _with_lanes_as_carry(self, axis: Axis, values: LoopParts, at: LoopParts, params: Params) -> Any:
        """The batched loop, with the consts that differ between lanes as carries that never change.

        So the carry alone tells what an iteration computes for a lane. XLA makes carries of all consts anyway.
        """
        marks = LoopParts([d is not None for d in at.cond], [d is not None for d in at.body], [])
        cond, body = lanes_as_carry(params["cond_jaxpr"], params["body_jaxpr"], tuple(marks.cond), tuple(marks.body))
        moved, dims = (_lanes_last(part, marks) for part in (values, at))
        changed = _with(params, cond, body, moved)
        outs, out_dims = self.batch(axis, moved.flat(), dims.flat(), **changed)
        return outs[: len(values.carry)], out_dims[: len(values.carry)]

    def lower(self, ctx: Any, *operands: Any, **params: Any) -> Any:
        return lower_while(ctx, params["cond_jaxpr"], params["body_jaxpr"], self._parts(operands, params), None)

    def checked(self, errors: frozenset[str], operands: Values, **params: Any) -> Any:
        from xlamini.transforms.while_loop.check import checked_while  # for those who check only

        return checked_while(self._loop, errors, self._parts(operands, params), params)

    def linearize(self, primals: Values, tangents: Values, **params: Any) -> Any:
        """Linearize without residuals: the tangent program recomputes the loop from the initial carry, as a jvp."""
        outs, zeros = self._without_tangents(primals, params)
        nonzero = self._nonzero(tangents, params)
        if not any(nonzero):
            return outs, zeros
        _check_repeatable(params, "the tangent program")
        quiet = {name: silent(x) if isinstance(x, Jaxpr) else x for name, x in params.items()}
        recomputed = self.outs_and_tangents(primals, tangents, quiet)
        return outs, with_zeros(_carry_avals(params), nonzero, recomputed[len(outs) :])

    def partial_eval(self, unknown: Sequence[bool], operands: Values, **params: Any) -> Any:
        """Compute the known carries in a loop of their own; the unknown loop computes all carries again.

        Residuals of every iteration could not be stored, because the trip count is unknown.
        """
        carry = unknown_carries(params["cond_jaxpr"], params["body_jaxpr"], self._parts(unknown, params))
        used, outs, of_known = self.dce(inverse(carry), params)
        has_effects = any(params[name].effects for name in self.jaxpr_names)
        if all(carry) or has_effects or any(chosen(unknown, used)):
            return self.bind(*operands, **params)
        results = iter(self.bind(*chosen(operands, used), **of_known))
        known = [next(results) if live else None for live in outs]
        every = self.bind(*operands, **params)
        return [b if u else a for a, b, u in zip(known, every, carry, strict=True)]

    def dce(self, used: Sequence[bool], params: Params) -> Any:
        cond, body = params["cond_jaxpr"], params["body_jaxpr"]
        live = live_operands(cond, body, params["cond_nconsts"], params["body_nconsts"], used)
        pruned = {
            **params,
            "body_jaxpr": prune(body, live.carry, (*live.body, *live.carry)),
            "body_nconsts": sum(live.body),
            "cond_jaxpr": prune(cond, (True,), (*live.cond, *live.carry)),
            "cond_nconsts": sum(live.cond),
        }
        return [*live.cond, *live.body, *live.carry], list(live.carry), pruned

    def with_captured(self, operands: Values, params: Params) -> Any:
        cond, body = params["cond_jaxpr"], params["body_jaxpr"]
        values = self._parts(operands, params)
        every = LoopParts([*cond.consts, *values.cond], [*body.consts, *values.body], values.carry)
        return [x for part in every for x in part], _with(params, close_over(cond), close_over(body), every)

    def outs_and_tangents(self, primals: Values, tangents: Values, params: Params) -> list[Any]:
        """The jvp as one loop: its results, then their nonzero tangents."""
        values, along = self._parts(primals, params), self._parts(tangents, params)
        body, nonzero = jvp_body(params["body_jaxpr"], nonzero_of(along.body), nonzero_of(along.carry))
        cond = widen_cond(params["cond_jaxpr"], tuple(body.out_avals[len(nonzero) :]))
        carry = [*values.carry, *map(instantiated, chosen(along.carry, nonzero))]
        return self._loop(cond, body, LoopParts(values.cond, [*values.body, *given(along.body)], carry), params)

    def _nonzero(self, tangents: Values, params: Params) -> Mask:
        along = self._parts(tangents, params)
        return jvp_body(params["body_jaxpr"], nonzero_of(along.body), nonzero_of(along.carry))[1]

    def _without_tangents(self, primals: Values, params: Params) -> tuple[list[Any], list[Any]]:
        avals = _carry_avals(params)
        return self.bind(*primals, **params), with_zeros(avals, [False] * len(avals), ())

    def _loop(self, cond: Jaxpr, body: Jaxpr, operands: LoopParts, params: Params) -> list[Any]:
        """Bind a loop of these jaxprs; the other params are copied."""
        return self.bind(*(x for part in operands for x in part), **_with(params, cond, body, operands))

    def unroll(self, run: RunBody, operands: Values, params: Params) -> Sequence[Any] | None:
        values = self._parts(operands, params)
        if params["cond_jaxpr"].out_avals[0].ndim:
            return None  # each example of the batch has its own number of iterations
        carry, iteration = values.carry, 0
        while iteration != params.get("max_steps") and self._holds(run, values, carry, iteration, params):
            carry = run(params["body_jaxpr"], [*values.body, *carry], iteration)
            iteration += 1
        return carry

    def _holds(self, run: RunBody, values: LoopParts, carry: Values, iteration: int, params: Params) -> bool:
        (predicate,) = run(params["cond_jaxpr"], [*values.cond, *carry], iteration)
        return bool(value_of(predicate))

    def _parts(self, values: Values, params: Params) -> LoopParts:
        return parts(values, params["cond_nconsts"], params["body_nconsts"])


while_p: Final = While()


def _with(params: Params, cond: Jaxpr, body: Jaxpr, operands: LoopParts) -> dict[str, Any]:
    return {
        **params,
        "body_jaxpr": body,
        "body_nconsts": len(operands.body),
        "cond_jaxpr": cond,
        "cond_nconsts": len(operands.cond),
    }


def _lanes_last(values: LoopParts, marks: LoopParts) -> LoopParts:
    """The parts with the marked consts after the carry."""
    lanes = [*chosen(values.cond, marks.cond), *chosen(values.body, marks.body)]
    cond, body = chosen(values.cond, inverse(marks.cond)), chosen(values.body, inverse(marks.body))
    return LoopParts(cond, body, [*values.carry, *lanes])


def _carry_avals(params: Params) -> list[ShapedArray]:
    return params["body_jaxpr"].out_avals


def _check_types(what: str, avals: Avals, carry: Avals) -> None:
    if list(avals) != list(carry):
        raise TypeError(f"while: {what} is {list(avals)}, but the carry is {list(carry)}")


def _check_repeatable(params: Params, why: str) -> None:
    effects = more_than_observing(params["cond_jaxpr"].effects | params["body_jaxpr"].effects)
    if effects:
        raise NotImplementedError(
            f"while_loop: its functions have effects ({', '.join(map(repr, effects))}), which {why} would repeat; "
            "move the effects out of the loop"
        )
