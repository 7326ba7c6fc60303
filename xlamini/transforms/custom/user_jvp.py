"""The user's rule for forward mode as a jaxpr, and what it must return."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import config
from xlamini.core.pytree import unflatten
from xlamini.core.tangents import is_differentiable, tangent_aval
from xlamini.core.tracer import build
from xlamini.primitives.convert import convert
from xlamini.staging.call.higher_order import Mask, chosen, inverse, merged
from xlamini.staging.trace.arguments import name_of
from xlamini.transforms.custom.check_user_rules import compare_jvp
from xlamini.transforms.custom.closures import current, stand_for
from xlamini.transforms.custom.customized import CustomCall
from xlamini.transforms.custom.jvp_rule import JvpRule, Pushed
from xlamini.transforms.custom.point import here, values_at
from xlamini.transforms.custom.rule_checks import (
    RuleName,
    checked_outputs,
    checked_pair,
    checked_tree,
    checked_types,
    explaining,
)
from xlamini.transforms.custom.symbolic_zero import SymbolicZero, zero_tangent


class UserJvp(JvpRule):
    """The user's rule at one call. Its operands are what it closes over (`closed`), then the call's own."""

    def __init__(self, what: str, rule: Callable[..., Any], symbolic_zeros: bool, call: CustomCall):
        super().__init__()
        self.name, self.symbolic_zeros = RuleName(what, rule, call.name), symbolic_zeros
        self.fixed = [value for _, value in call.fixed]
        self.in_tree, self.names, closed = call.in_tree, call.names, call.closed
        self.out_tree, self.out_avals = call.traced.out_tree, tuple(call.traced.jaxpr.out_avals)
        self.closed: tuple[Any, ...] = tuple(x.variable for x in closed)
        self.avals = (*(x.aval for x in closed), *call.avals)
        self.point = here([*closed, *call.leaves])
        self.traced_fun = call.traced if config.debug_custom_rules.value else None
        self.now = tuple(getattr(current(x), "variable", None) for x in closed)

    def _traced(self, nonzero: Mask) -> Pushed:
        count, first = len(self.avals), len(self.closed)
        nonzero_out: list[bool] = []

        def flat(*operands: Any) -> list[Any]:
            stand_for(self.closed, operands[:first])
            tangents = self._tangents(nonzero, operands[count:])
            primals = self._tree(operands[first:count])
            outs, found = self._checked(self.name.rule(*self.fixed, primals, self._tree(tangents)))
            nonzero_out.extend(t is not None for t in found)
            return [*outs, *(t for t in found if t is not None)]

        slopes = [tangent_aval(a) for a, nz in zip(self.avals, nonzero, strict=True) if nz]
        names = _names(self, nonzero)
        with explaining(self.name):
            jaxpr, _ = build(flat, [*self.avals, *slopes], name_of(self.name.rule), names, self._values(len(slopes)))
        pushed = Pushed(jaxpr, tuple(nonzero_out))
        if self.traced_fun is not None:
            compare_jvp(self, self.traced_fun, pushed, nonzero)
        return pushed

    def _tree(self, leaves: Sequence[Any]) -> Any:
        return unflatten(self.in_tree, leaves)[0]

    def _tangents(self, nonzero: Mask, tangents: Sequence[Any]) -> list[Any]:
        """A tangent for every argument: nobody asks how what a rule closes over changes."""
        first = len(self.closed)
        own, marks = self.avals[first:], nonzero[first:]
        zeros = [zero_tangent(a, self.symbolic_zeros) for a in chosen(own, inverse(marks))]
        return merged(marks, tangents[sum(nonzero[:first]) :], zeros)

    def _values(self, count: int) -> list[Any] | None:
        """The numbers behind the operands, where Python may ask for them."""
        values = values_at(self.point)
        return None if values is None else [*values, *[None] * count]

    def _checked(self, result: Any) -> tuple[list[Any], list[Any]]:
        """Flat outputs, and their tangents, None for those that are zero for sure; TypeError for what does not fit."""
        out, slope = checked_pair(self.name, result, "primal output, tangent output")
        outs = checked_outputs(self.name, out, self.out_tree, self.out_avals)
        return outs, self._checked_tangents(checked_tree(self.name, "tangent output", slope, self.out_tree))

    def _checked_tangents(self, slopes: Sequence[Any]) -> list[Any]:
        wanted = [tangent_aval(a) for a in self.out_avals]
        like = "the tangent of the output there"
        checked_types(self.name, "tangent output", slopes, self.out_tree, wanted, like)
        return [
            None if isinstance(t, SymbolicZero) or not is_differentiable(a) else convert(t, a.dtype, a.weak_type)
            for t, a in zip(slopes, self.out_avals, strict=True)
        ]


def _names(rule: UserJvp, nonzero: Mask) -> list[str]:
    """What messages call the operands."""
    own = [*[f"a value that {rule.name.rule} closes over"] * len(rule.closed), *rule.names]
    return [*own, *(f"tangent of {name}" for name, nz in zip(own, nonzero, strict=True) if nz)]
