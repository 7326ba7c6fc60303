"""The equation of a call: the primitive `call_hi_primitive`, whose rules ask the user's object for its own."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from xlamini.core import (
    Avals,
    Axis,
    Dims,
    Params,
    ShapedArray,
    Values,
    aval_of,
    close_over,
    flatten_axes,
    flatten_from_user,
    is_linear,
    unflatten,
)
from xlamini.core.program.hi_types import HiAval
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import build
from xlamini.experimental.hijax.derived_rules import results_of
from xlamini.experimental.hijax.hi_call import HiCall, OfUsersTypes, dims_of_leaves
from xlamini.experimental.hijax.linear import UsersLinearRule, linear_map
from xlamini.extend.rules import as_values
from xlamini.interpreters.evaluate import evaluate
from xlamini.staging import nonzero_of
from xlamini.transforms.custom.accumulators import ValAccum


class CallHiPrimitive(OfUsersTypes):
    """A call of a user's `HiPrim`; its operands are the leaves of the arguments."""

    traits = 0
    name = "call_hi_primitive"
    multiple_results = True
    lacks: Mapping[str, str] = {"lower": "the user's rule replaces it"}

    def shape_rule(self, *avals: ShapedArray, call: HiCall) -> Avals:
        return call.out_avals

    def jvp(self, primals: Values, tangents: Values, *, call: HiCall) -> Any:
        """By the user's `jvp`; without one, by the linear map of `linearize`."""
        if not call.primitive.writes("jvp") and call.primitive.writes("linearized"):
            return self.linearize(primals, tangents, call=call)
        out, tangent = call.primitive.jvp(call.args(primals), call.args(tangents))
        return call.outs("jvp", out), call.tangents("jvp", tangent)

    def linearize(self, primals: Values, tangents: Values, *, call: HiCall) -> Any:
        """By `lin`, or `vjp_fwd`, and a linear map; from `jvp` if that alone is written."""
        user = call.primitive
        if not (user.writes("lin") or user.writes("vjp_fwd")) and user.writes("jvp"):
            return self.jvp(primals, tangents, call=call)
        nonzero, static = nonzero_of(tangents), []

        def forward(*operands: Any) -> list[Any]:
            args, nzs = call.args(operands), unflatten(user.in_tree, nonzero)
            found = [results_of(rule(nzs, *args)) for rule in _forward_rules(user)]
            kept = [(residuals, structured) for _, residuals, _, structured in found]
            leaves, tree = flatten_from_user((kept[0], kept[1:], args if keeps_primals(user) else ()))
            static.append((call.differentiated([nonzero_out for _, _, nonzero_out, _ in found]), tree))
            return [*call.outs("lin", found[0][0]), *leaves]

        jaxpr, captured = build(forward, [aval_of(x) for x in primals], call.name, None, call.values())
        found = evaluate(close_over(jaxpr), [*captured, *primals])
        count = len(call.out_avals)
        rule = UsersLinearRule(call, nonzero, *static[0])
        return found[:count], linear_map(rule, found[count:], tangents)

    def transpose(self, cts: Values, *operands: Any, call: HiCall) -> Values:
        accumulators = [ValAccum(x.aval) if is_linear(x) else None for x in operands]
        places = [x if a is None else a for x, a in zip(as_values(operands), accumulators, strict=True)]
        user = call.primitive
        user.transpose(unflatten(user.out_tree, as_values(cts)), *unflatten(user.in_tree, places))
        return [None if a is None else a.val for a in accumulators]

    def batch(self, axis: Axis, operands: Values, dims: Dims, *, call: HiCall) -> Any:
        user = call.primitive
        specs = [_spec(a, d) for a, d in zip(call.in_avals, dims, strict=True)]
        out, out_dims = user.batch(axis, call.args(operands), unflatten(user.in_tree, specs))
        return call.like_output("batch", out), dims_of_leaves(user.out_tree, out_dims)

    def dce(self, used: Sequence[bool], params: Params) -> Any:
        """By the user's `dce`, which may put another operation in the place of the call."""
        call = params["call"]
        user = call.primitive
        live = unflatten(user.in_tree, [True] * len(call.in_avals))
        ins, outs, new = user.dce(unflatten(user.out_tree, list(used)), live)
        if new is None or new is user:
            return None
        kept = flatten_axes("dce", ins, user.in_tree), flatten_axes("dce", outs, user.out_tree)
        return *kept, {"call": HiCall(new, ())}

    def shown_name(self, params: Params) -> str:
        return params["call"].name

    def shown_params(self, params: Params) -> Params:
        return params["call"].primitive.pp_params()

    def expand(self, *operands: Any, call: HiCall) -> list[Any]:
        return call.expanded(operands)

    def bind(self, *operands: Any, call: HiCall) -> Any:
        return call.expanded(operands) if state.builder is None else super().bind(*operands, call=call)


def _forward_rules(user: Any) -> list[Any]:
    """The rules whose residuals `linearized` and `vjp_bwd` are given: one for both, unless both pairs are written."""
    own_backward = user.writes("vjp_bwd") or user.writes("vjp_bwd_retval")
    return [user.lin, user.vjp_fwd] if own_backward and user.writes("lin") else [user.lin]


def keeps_primals(user: Any) -> bool:
    """Whether the linear map of a call is computed by the user's `jvp`, which takes the primals."""
    return user.writes("jvp") and not user.writes("linearized")


def _spec(aval: ShapedArray, dim: Any) -> Any:
    return aval.spec(dim) if type(aval) is HiAval and dim is not None else dim


call_hi_primitive_p: Final = CallHiPrimitive()
