"""The primitive `while`: a loop of as many turns as its condition holds.

Its operands are those for the condition, those for the body, and the carry. The predicate of a batched loop has
dimensions, and then all its carries have them too, in front: such a loop goes on while any element of the predicate is
true, and where the predicate is false the carry stays as it is.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core.avals import ShapedArray
from xlamini.core.effects import more_than_observing
from xlamini.core.jaxpr import Jaxpr, close_over
from xlamini.core.primitive import Axis
from xlamini.core.tangents import is_linear, is_zero
from xlamini.core.tracer import state
from xlamini.primitives.batch_ops import with_batch_first
from xlamini.primitives.tangent_ops import instantiated
from xlamini.staging.call.higher_order import (
    HigherOrder,
    Mask,
    chosen,
    given,
    inverse,
    nonzero_of,
    plain_types,
    with_zeros,
)
from xlamini.transforms.control_flow.strip_prints import silent
from xlamini.transforms.while_loop.lowering import lowered
from xlamini.transforms.while_loop.rules import (
    Parts,
    batched,
    body_with_tangents,
    ignoring,
    needed,
    parts,
    slim,
    unknown_carries,
)


class While(HigherOrder):
    """A loop. Params that the rules here do not know are passed on to the loops that they make."""

    name = "while"

    def operand_avals(self, params: dict[str, Any]) -> Sequence[ShapedArray]:
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
        wanted = plain_types([*cond_jaxpr.in_avals[:cond_nconsts], *body_jaxpr.in_avals])
        if plain_types(avals) != wanted:
            raise TypeError(f"{self.name}: its operands are {list(avals)}, but its jaxprs take {wanted}")
        predicate = cond_jaxpr.out_avals[0]
        if predicate.dtype != np.bool_ or any(a.shape[: predicate.ndim] != predicate.shape for a in operands.carry):
            raise TypeError(f"{self.name}: the predicate {predicate} does not fit the carry {operands.carry}")
        return carry

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        nonzero = self._nonzero(tangents, params)
        if not any(nonzero):
            return self._without_tangents(primals, params)
        outs = self.with_tangents(primals, tangents, params)
        count = len(nonzero)
        return outs[:count], with_zeros(_carry_avals(params), nonzero, outs[count:])

    def transpose(self, cts: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        kept, _, _ = self.dce([not is_zero(ct) for ct in cts], params)
        if not any(is_linear(x) for x in chosen(operands, kept)):
            return [None] * len(operands)
        assert state.builder is not None
        made_by = state.builder.provenance
        where = f" at {made_by.source}" if made_by is not None else ""
        raise ValueError(
            f"while_loop{where} has no derivative in reverse mode: that needs the values of every turn, and the number "
            "of turns is not known while the program is made. Say how many there can be with "
            "while_loop(..., max_steps=N), use fori_loop with bounds that are Python ints, or scan; forward mode (jvp, "
            "jacfwd) works as it is"
        )

    def batch(self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        values, at = self._parts(operands, params), self._parts(dims, params)
        made = batched(params["cond_jaxpr"], params["body_jaxpr"], axis, at)
        if made.cond.out_avals[0].ndim:
            _check_repeatable(params, "under vmap, with a condition that depends on the batch, examples that are done")
        carry = with_batch_first(values.carry, at.carry, axis.size, made.carry)
        outs = self._loop(made.cond, made.body, values._replace(carry=carry), params)
        return outs, [0 if marked else None for marked in made.carry]

    def lower(self, ctx: Any, *operands: Any, **params: Any) -> Any:
        return lowered(ctx, params["cond_jaxpr"], params["body_jaxpr"], self._parts(operands, params), None)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        """The tangent program runs the loop again, with tangents: all it keeps is the initial carry."""
        outs, zeros = self._without_tangents(primals, params)
        nonzero = self._nonzero(tangents, params)
        if not any(nonzero):
            return outs, zeros
        _check_repeatable(params, "the linear half of the program")
        quiet = {name: silent(x) if isinstance(x, Jaxpr) else x for name, x in params.items()}
        again = self.with_tangents(primals, tangents, quiet)
        return outs, with_zeros(_carry_avals(params), nonzero, again[len(outs) :])

    def partial_eval(self, unknown: Sequence[bool], operands: Sequence[Any], **params: Any) -> Any:
        """What is known is computed by a loop of its own, and again in the loop of all."""
        carry = unknown_carries(params["cond_jaxpr"], params["body_jaxpr"], self._parts(unknown, params))
        used, outs, of_known = self.dce(inverse(carry), params)
        if all(carry) or self.effects(params) or any(chosen(unknown, used)):
            return self.bind(*operands, **params)
        known = iter(self.bind(*chosen(operands, used), **of_known))
        now = [next(known) if kept else None for kept in outs]
        later = self.bind(*operands, **params)
        return [b if u else a for a, b, u in zip(now, later, carry, strict=True)]

    def dce(self, used: Sequence[bool], params: dict[str, Any]) -> Any:
        cond, body = params["cond_jaxpr"], params["body_jaxpr"]
        found = needed(cond, body, params["cond_nconsts"], params["body_nconsts"], used)
        slim_params = {
            **params,
            "body_jaxpr": slim(body, found.carry, (*found.body, *found.carry)),
            "body_nconsts": sum(found.body),
            "cond_jaxpr": slim(cond, (True,), (*found.cond, *found.carry)),
            "cond_nconsts": sum(found.cond),
        }
        return [*found.cond, *found.body, *found.carry], list(found.carry), slim_params

    def with_captured(self, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        cond, body = params["cond_jaxpr"], params["body_jaxpr"]
        values = self._parts(operands, params)
        every = Parts([*cond.consts, *values.cond], [*body.consts, *values.body], values.carry)
        return [x for part in every for x in part], _with(params, close_over(cond), close_over(body), every)

    def with_tangents(self, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """The results of the loop and then their tangents that are not zero, by one loop."""
        values, along = self._parts(primals, params), self._parts(tangents, params)
        body, nonzero = body_with_tangents(params["body_jaxpr"], nonzero_of(along.body), nonzero_of(along.carry))
        cond = ignoring(params["cond_jaxpr"], tuple(body.out_avals[len(nonzero) :]))
        carry = [*values.carry, *map(instantiated, chosen(along.carry, nonzero))]
        return self._loop(cond, body, Parts(values.cond, [*values.body, *given(along.body)], carry), params)

    def _nonzero(self, tangents: Sequence[Any], params: dict[str, Any]) -> Mask:
        along = self._parts(tangents, params)
        return body_with_tangents(params["body_jaxpr"], nonzero_of(along.body), nonzero_of(along.carry))[1]

    def _without_tangents(self, primals: Sequence[Any], params: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        avals = _carry_avals(params)
        return self.bind(*primals, **params), with_zeros(avals, [False] * len(avals), ())

    def _loop(self, cond: Jaxpr, body: Jaxpr, operands: Parts, params: dict[str, Any]) -> list[Any]:
        """A loop of these jaxprs, with the params besides."""
        return self.bind(*(x for part in operands for x in part), **_with(params, cond, body, operands))

    def _parts(self, values: Sequence[Any], params: dict[str, Any]) -> Parts:
        return parts(values, params["cond_nconsts"], params["body_nconsts"])


while_p = While()


def _with(params: dict[str, Any], cond: Jaxpr, body: Jaxpr, operands: Parts) -> dict[str, Any]:
    return {
        **params,
        "body_jaxpr": body,
        "body_nconsts": len(operands.body),
        "cond_jaxpr": cond,
        "cond_nconsts": len(operands.cond),
    }


def _carry_avals(params: dict[str, Any]) -> list[ShapedArray]:
    return params["body_jaxpr"].out_avals


def _check_types(what: str, found: Sequence[ShapedArray], carry: Sequence[ShapedArray]) -> None:
    if list(found) != list(carry):
        raise TypeError(f"while: {what} is {list(found)}, but the carry is {list(carry)}")


def _check_repeatable(params: dict[str, Any], why: str) -> None:
    effects = more_than_observing(params["cond_jaxpr"].effects | params["body_jaxpr"].effects)
    if effects:
        raise NotImplementedError(
            f"while_loop: its functions have effects ({', '.join(map(repr, effects))}), which {why} would repeat; "
            "move what has them out of the loop"
        )
