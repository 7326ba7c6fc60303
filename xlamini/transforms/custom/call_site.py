"""A call of a custom function as its rules see it: types, fixed arguments, and the values that the rules close over."""
from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from xlamini.core import Avals, Builder, Jaxpr, Tracer, Values
from xlamini.core.caching.structure import RewriteRule
from xlamini.core.errors.frames import is_own
from xlamini.core.flags import config
from xlamini.core.program.activity_analysis import derivative_given_by_rule, may_have_tangent
from xlamini.core.program.rewriting import placed
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import A_RULE, build
from xlamini.primitives import convert
from xlamini.staging import Mask, Trace, name_of
from xlamini.staging.trace.tracing import kind_of_trace
from xlamini.transforms.custom.closure_convert import current, stand_for
from xlamini.transforms.custom.rule_contract import CallTypes, Contract

if TYPE_CHECKING:
    from xlamini.core.program.avals import ShapedArray


class CustomRule(RewriteRule):
    """A user's rule as a param of an equation; its batched form, or a part of it, has the same contract."""

    contract: Contract
    _early: Callable[[], Any] = staticmethod(lambda: None)

    @property
    def is_fixed(self) -> bool:
        return is_own(self.contract.rule)

    def trace_early(self, operands: Values) -> None:
        """Trace the rule at its call if the program is being differentiated: what it reads in Python may change later.

        `operands` are those of which the rule may get tangents. A rule that raises is traced again if the derivative
        needs it, where the error belongs.
        """
        if state.builder.derivative_by in ("", A_RULE):
            return
        nonzero = tuple(map(may_have_tangent, operands))
        if any(nonzero):
            with suppress(Exception), derivative_given_by_rule():
                self._early = held_by_trace([_context_of(nonzero), self.traced_anew(nonzero)])

    def traced_early(self, nonzero: Mask) -> Any:
        """The rule as it was traced at its call for these tangents; None if it was not, or if that trace is over."""
        early: tuple[Any, Any] = self._early() or (None, None)
        context, traced = early
        if context != _context_of(nonzero):
            return None
        if Tracer not in map(type, traced.jaxpr.consts):
            return traced
        consts = [current(x) if type(x) is Tracer else x for x in traced.jaxpr.consts]
        return traced._replace(jaxpr=traced.jaxpr.replace(consts=consts))

    def traced_anew(self, nonzero: Mask) -> Any:
        raise NotImplementedError

    def at_call(self, jaxpr: Jaxpr) -> Jaxpr:
        """The program of the rule; that of a library function has the place of the call, as the rule has no user's."""
        place = state.builder and state.builder.provenance
        if not (place and self.is_fixed):
            return jaxpr
        return placed(jaxpr, place)

    def __repr__(self) -> str:
        return name_of(self.contract.rule)


def _context_of(nonzero: Mask) -> tuple[Any, ...]:
    return nonzero, config.trace_context_key(), state.axes


class CallOperands(list[Any]):
    """The operands of a call, or what was traced for them, which live as long as the outermost trace."""

    __slots__ = ("__weakref__",)


class CallSite:
    """What the rules of one call are traced for.

    The operands of a rule are the values it closes over, identified by their variables (`closed`), and then the call's
    arguments. The operands themselves are held weakly, since a program in a cache holds its rules.
    """

    fixed: tuple[tuple[int, Any], ...]
    types: CallTypes

    def __init__(
        self,
        types: CallTypes,
        fixed: Sequence[tuple[int, Any]],
        closed: Sequence[Tracer],
        leaves: Values,
        traced: Trace,
    ):
        self.types, self.fixed = types, tuple(fixed)
        self.closed: tuple[Any, ...] = tuple(x.variable for x in closed)
        self.avals: tuple[ShapedArray, ...] = (*(x.aval for x in closed), *types.in_avals)
        self.debugged: Trace | None = traced if config.debug_custom_rules.value else None
        """The function, if the flag asks to compare its rules with finite differences."""
        self.rewritten: list[Any | None] = [getattr(current(x), "variable", None) for x in closed]
        """The variables of the values closed over in the program that the call is traced into."""
        self._kind = kind_of_trace()
        self._operands = concrete_operands([*closed, *leaves])

    def __eq__(self, other: object) -> bool:
        """Whether rules traced for both are equal; fixed arguments compare by identity, as not all can be hashed."""
        return self is other or (
            type(other) is CallSite
            and self.concrete() is other.concrete() is None
            and self.closed == other.closed
            and [(i, id(x)) for i, x in self.fixed] == [(i, id(x)) for i, x in other.fixed]
            and self.types == other.types
        )

    def concrete(self) -> list[Any] | None:
        """The operands, if Python control flow in a rule may read their values; None once their trace is over."""
        return None if self._operands is None else self._operands()

    def full_args(self, leaves: Values) -> list[Any]:
        """All arguments of the call: those with these leaves, and the fixed ones at their positions."""
        return with_fixed(self.fixed, self.types.args(leaves))

    def before(self, *args: Any) -> list[Any]:
        """The arguments of a rule to which the fixed ones come first."""
        return [*(value for _, value in self.fixed), *args]

    def names(self, contract: Contract) -> list[str]:
        """How errors name the operands."""
        return [*[f"a value that {name_of(contract.rule)} closes over"] * len(self.closed), *self.types.names]

    def trace(
        self,
        contract: Contract,
        fun: Callable[[Values, Values], list[Any]],
        avals: Avals,
        values: Values | None = None,
        names: Sequence[str] | None = None,
        further: str = "",
    ) -> Jaxpr:
        """`fun(values closed over, other inputs)` as a jaxpr, of inputs of these types, for the rule of `contract`.

        Python control flow may read `values`, those of the first inputs.
        """
        count = len(self.closed)
        padded = None if values is None else [*values, *[None] * (len(avals) - len(values))]

        def flat(*inputs: Any) -> list[Any]:
            stand_for(self.closed, inputs[:count])
            return fun(inputs[:count], inputs[count:])

        with contract.explaining(further):
            kind = Builder if is_own(contract.rule) else self._kind
            return build(flat, avals, name_of(contract.rule), names, padded, kind=kind)[0]


def with_fixed(fixed: Sequence[tuple[int, Any]], others: Values) -> list[Any]:
    """All arguments of a call: the fixed ones inserted at their positions among the others."""
    full = list(others)
    for position, value in fixed:
        full.insert(position, value)
    return full


def weakly_typed_as(jaxpr: Jaxpr, operands: Values) -> list[Any]:
    """Operands with the weak types of the inputs for which a rule was traced."""
    return [convert(x, v.aval.dtype, v.aval.weak_type) for x, v in zip(operands, jaxpr.invars, strict=True)]


def is_concrete(operands: Values) -> bool:
    """Whether Python may read the values of these operands, as it may in a gradient outside of jit."""
    return all(type(x) is not Tracer or x.builder.known for x in operands)


def concrete_operands(operands: Values) -> weakref.ref[CallOperands] | None:
    return None if state.builder is None or not is_concrete(operands) else held_by_trace(operands)


def held_by_trace(values: Values) -> weakref.ref[CallOperands]:
    """A weak reference to values that live as long as the outermost trace."""
    builder: Any = state.builder
    while builder.parent is not None:
        builder = builder.parent
    held = CallOperands(values)
    builder.memo[id(held)] = held
    return weakref.ref(held)
