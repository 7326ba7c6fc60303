"""The primitives of functions with rules: calls that are as any other, but for what the rules say.

A subclass says in `called` which param is the function's jaxpr, and in some of its methods what the rules are for. The
first operands are the values that the function captured, named in the param `captured`.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.errors import UnexpectedTracerError
from xlamini.core.jaxpr import Jaxpr, close_over
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.staging.call.call_rules import in_halves, transposed
from xlamini.staging.call.higher_order import HigherOrder, chosen, nonzero_of
from xlamini.transforms.custom.closures import captured_names


class RuledCall(HigherOrder):
    """A call with rules. Where no rule is asked for its inside comes into the open."""

    called: str  # type: ignore[override]
    hidden: tuple[str, ...] = ("captured",)
    """The params that are not shown."""

    def shape_rule(self, *avals: ShapedArray, **params: Any) -> list[ShapedArray]:
        return self.inside(params).out_avals

    def transpose(self, cts: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        """The transpose of the function itself, as nobody has asked for a derivative."""
        return transposed(evaluate, self.inside(params), cts, operands)

    def lower(self, ctx: Any, *operands: Any, **params: Any) -> Any:
        jaxpr = self.inside(params)
        written = ctx.call if ctx.is_kept() else ctx.body
        return written(jaxpr, operands, jaxpr.name)

    def partial_eval(self, unknown: Sequence[bool], operands: Sequence[Any], **params: Any) -> Any:
        """Without the rules if that makes some outputs known; this is how a rule's own derivative is."""
        jaxpr = self.inside(params)
        if all(partial_eval(jaxpr, tuple(unknown)).unknown_out):
            return self.bind(*operands, **params)
        return in_halves(evaluate, jaxpr, unknown, operands)

    def with_captured(self, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        jaxpr = self.inside(params)
        captured = (*captured_names(None, jaxpr.consts), *params["captured"])
        return [*jaxpr.consts, *operands], {**params, self.called: close_over(jaxpr), "captured": captured}

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        names = sorted(params.keys() - self.hidden, key=lambda name: (name != "name", name))
        return {name: params[name] for name in names}

    def inside(self, params: dict[str, Any]) -> Jaxpr:
        return params[self.called]


def check_captured(what: str, tangents: Sequence[Any], captured: Sequence[str], name: str) -> int:
    """How many values the function captured; an error if one of them is being differentiated."""
    moving = chosen(captured, nonzero_of(tangents[: len(captured)]))
    if moving:
        raise closes_over(what, name, moving[0])
    return len(captured)


def closes_over(what: str, fun: str, value: str) -> UnexpectedTracerError:
    """The error for a value in which a derivative is asked for that no rule gives."""
    return UnexpectedTracerError(
        f"{what}: {fun} closes over {value}, which is being differentiated, but rules give derivatives in the "
        "arguments alone; make the value an argument (xlamini.closure_convert finds such values), or hold it fixed "
        "with lax.stop_gradient"
    )
