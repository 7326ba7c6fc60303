"""The base of the primitives of functions with rules: calls, of which some transformations are what a rule says.

Without such a transformation a call is inlined. The first operands are the values that the function captured, named in
the param `captured`.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import Avals, CallLike, Jaxpr, Params, ShapedArray, Values, Var, close_over
from xlamini.core.errors import UnexpectedTracerError
from xlamini.core.program.primitive import RunBody
from xlamini.interpreters.evaluate import evaluate
from xlamini.staging import HigherOrder, chosen, nonzero_of
from xlamini.staging.call.call_rules import call_partial_eval, call_transpose
from xlamini.transforms.custom.closure_convert import captured_names


class RuledCall(CallLike, HigherOrder):
    """A call with rules. A subclass says in `called` which param is the function's jaxpr."""

    hidden: tuple[str, ...] = ("captured",)
    """The params that are not shown."""

    def shape_rule(self, *avals: ShapedArray, **params: Any) -> list[ShapedArray]:
        return params[self.called].out_avals

    def transpose(self, cts: Values, *operands: Any, **params: Any) -> Values:
        """The transpose of the function itself, since a rule gives derivatives, not transposes."""
        return call_transpose(evaluate, params[self.called], cts, operands)

    def lower(self, ctx: Any, *operands: Any, **params: Any) -> Any:
        jaxpr = params[self.called]
        write = ctx.call if ctx.is_noinline() else ctx.body
        return write(jaxpr, operands, jaxpr.name)

    def partial_eval(self, unknown: Sequence[bool], operands: Values, **params: Any) -> Any:
        """Drops the rules where that makes some outputs known, as in the derivative of a rule."""
        return call_partial_eval(
            evaluate, params[self.called], unknown, operands, whole=lambda: self.bind(*operands, **params)
        )

    def unroll(self, run: RunBody, operands: Values, params: Params) -> None:
        """It stays whole, for its derivative is not that of its jaxpr."""

    def checked(self, errors: frozenset[str], operands: Values, **params: Any) -> Any:
        """The call keeps its rules; what may fail in the function is computed beside it."""
        from xlamini.staging.call.check import errors_beside, without_checks  # for those who check only

        jaxpr = params[self.called]
        outs = self.bind(*operands, **{**params, self.called: without_checks(jaxpr)})
        return outs, errors_beside(jaxpr, errors, operands)

    def num_captured(self, tangents: Values, params: Params) -> int:
        """How many values the function captured; an error if one of them is being differentiated."""
        captured = params["captured"]
        moving = chosen(captured, nonzero_of(tangents[: len(captured)]))
        if moving:
            raise closes_over(self, params["name"], moving[0])
        return len(captured)

    def with_captured(self, operands: Values, params: Params) -> Any:
        jaxpr = params[self.called]
        captured = (*captured_names(None, jaxpr.consts), *params["captured"])
        return [*jaxpr.consts, *operands], {**params, self.called: close_over(jaxpr), "captured": captured}

    def shown_params(self, params: Params) -> Params:
        names = sorted(params.keys() - self.hidden, key=lambda name: (name != "name", name))
        return {name: params[name] for name in names}


def with_unread(jaxpr: Jaxpr, position: int, avals: Avals) -> Jaxpr:
    """The jaxpr with further inputs at this position, which it does not read."""
    if not avals:
        return jaxpr
    return jaxpr.replace(invars=[*jaxpr.invars[:position], *map(Var, avals), *jaxpr.invars[position:]])


def closed_over_both(first: Jaxpr, second: Jaxpr) -> tuple[Jaxpr, Jaxpr, Values]:
    """Two jaxprs with the captured values of both as leading inputs, and these values."""
    ours, theirs = ([v.aval for v in each.constvars] for each in (first, second))
    closed = with_unread(close_over(first), len(ours), theirs), with_unread(close_over(second), 0, ours)
    return *closed, [*first.consts, *second.consts]


def closes_over(call: RuledCall, fun: str, value: str) -> UnexpectedTracerError:
    """The error for a derivative in a value that no rule has as an argument."""
    return UnexpectedTracerError(
        f"{call.name.removesuffix('_call')}: {fun} closes over {value}, which is being differentiated, but rules give "
        "derivatives in the arguments alone; make the value an argument (xlamini.closure_convert finds such values), "
        "or hold it fixed with lax.stop_gradient"
    )
