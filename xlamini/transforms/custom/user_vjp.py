"""The user's rules fwd and bwd at one call of a custom_vjp function, as jaxprs."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from xlamini.core import config
from xlamini.core.avals import ShapedArray
from xlamini.core.jaxpr import close_over
from xlamini.core.pytree import unflatten
from xlamini.core.tangents import is_differentiable
from xlamini.core.tracer import Tracer, aval_of, build
from xlamini.staging.call.higher_order import Mask, chosen, given, inverse, merged, nonzero_of
from xlamini.staging.trace.arguments import name_of
from xlamini.transforms.custom.check_user_rules import compare_vjp
from xlamini.transforms.custom.closures import current, stand_for
from xlamini.transforms.custom.customized import CustomCall, with_fixed
from xlamini.transforms.custom.point import here, values_at
from xlamini.transforms.custom.rule_checks import RuleName, explaining
from xlamini.transforms.custom.symbolic_zero import CustomVJPPrimal, zero_tangent
from xlamini.transforms.custom.vjp_checks import FwdResult, checked_cotangents, checked_fwd
from xlamini.transforms.custom.vjp_rules import Backward, Forward, ForwardRule, Pulled

AMONG_RESIDUALS = ", and return it from fwd among the residuals"


@dataclass(frozen=True)
class Signature:
    """One call of a custom_vjp function: the types of its arguments and outputs, flat and as trees.

    `in_tree` is the tree of `(args, {})`.
    """

    name: str
    in_tree: Any
    in_avals: tuple[ShapedArray, ...]
    out_tree: Any
    out_avals: tuple[ShapedArray, ...]
    names: Sequence[str] = field(compare=False, repr=False)

    @staticmethod
    def of(call: CustomCall) -> Signature:
        traced = call.traced
        out_avals = tuple(traced.jaxpr.out_avals)
        return Signature(call.name, call.in_tree, tuple(call.avals), traced.out_tree, out_avals, call.names)


class UserRules(NamedTuple):
    """What `defvjp` was given; at a call also the arguments in `nondiff_argnums`, by their positions."""

    fwd: Callable[..., Any]
    bwd: Callable[..., Any]
    symbolic_zeros: bool
    optimize_remat: bool
    fixed: tuple[tuple[int, Any], ...] = ()

    def run_fwd(self, args: Sequence[Any]) -> Any:
        return self.fwd(*with_fixed(self.fixed, args))

    def run_bwd(self, residuals: Any, cotangents: Any) -> Any:
        return self.bwd(*(value for _, value in self.fixed), residuals, cotangents)


class UserForward(ForwardRule):
    """The user's fwd at one call, where it and bwd close over the tracers `closed`."""

    def __init__(self, rules: UserRules, call: CustomCall):
        self.rules, self.call, self.closed = rules, Signature.of(call), tuple(call.closed)
        self.avals = [*(x.aval for x in call.closed), *call.avals]
        self.point = here([*call.closed, *call.leaves])
        self.fun = call.traced if config.debug_custom_rules.value else None
        self.now = tuple(x.variable for x in map(current, call.closed))

    def __repr__(self) -> str:
        return name_of(self.rules.fwd)

    def _key(self) -> tuple:
        """What two rules share iff they are the same rule; by identity, since not all callables can be hashed."""
        rules = self.rules
        fixed = tuple((i, id(x)) for i, x in rules.fixed)
        return id(rules.fwd), id(rules.bwd), rules[2:4], fixed, tuple(t.variable for t in self.closed)

    def __eq__(self, other: object) -> bool:
        if self is other or type(other) is not UserForward:
            return self is other
        asked = values_at(self.point) is not None or values_at(other.point) is not None
        return not asked and self._key() == other._key() and self.call == other.call

    def __hash__(self) -> int:
        return hash(self._key())

    def traced(self, perturbed: Mask) -> Forward:
        call, values, made = self.call, values_at(self.point), _Made()

        def flat(*tracers: Any) -> list[Any]:
            closed, args = _with_closed(self.closed, tracers)
            result = self._run(args, perturbed)
            made.residuals, made.tree = result.residuals, result.tree
            computed = [x for x in result.residuals if not _is_static(x)]
            return [*result.outs, *closed, *computed]

        with explaining(self._name, AMONG_RESIDUALS):
            jaxpr, captured = build(flat, self.avals, name_of(self.rules.fwd), None, values)
        backward = UserBackward(self.rules, call, self.closed, made.residuals, made.tree, values is not None)
        forward = Forward(close_over(jaxpr), captured, len(call.out_avals), backward)
        if self.fun is not None:
            compare_vjp(self, self.fun, forward)
        return forward

    def _run(self, args: Sequence[Any], perturbed: Mask) -> FwdResult:
        given = list(map(CustomVJPPrimal, args, perturbed)) if self.rules.symbolic_zeros else args
        positional, _ = unflatten(self.call.in_tree, given)
        return checked_fwd(self._name, self.call, self.rules.run_fwd(positional))

    @property
    def _name(self) -> RuleName:
        return RuleName("custom_vjp (fwd)", self.rules.fwd, self.call.name)


class _Made:
    """What is found while a rule is traced."""

    residuals: list[Any]
    tree: Any


def _with_closed(closed: Sequence[Tracer], tracers: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Any]]:
    """The inputs that stand for what the rule closes over, in the trace that begins, and the other inputs."""
    count = len(closed)
    stand_for([t.variable for t in closed], tracers[:count])
    return tracers[:count], tracers[count:]


def _is_static(residual: Any) -> bool:
    """A Python number is passed on to bwd as it is."""
    return type(residual) in (bool, int, float, complex)


class UserBackward(Backward):
    """The user's bwd, for residuals like those that fwd returned; Python numbers among them are passed on."""

    def __init__(
        self,
        rules: UserRules,
        call: Signature,
        closed: Sequence[Tracer],
        residuals: Sequence[Any],
        tree: Any,
        known: bool,
    ):
        self.rules, self.call, self.closed, self.tree = rules, call, closed, tree
        self.symbolic_zeros = rules.symbolic_zeros
        self.computed = tuple(not _is_static(x) for x in residuals)
        self.numbers = chosen(residuals, inverse(self.computed))
        arrays = chosen(residuals, self.computed)
        self.avals = [*(t.aval for t in closed), *map(aval_of, arrays)]
        self.values = [*closed, *arrays] if known else [None] * len(self.avals)

    def __repr__(self) -> str:
        return name_of(self.rules.bwd)

    def traced(self, nonzero: Mask) -> Pulled:
        rules, call, made = self.rules, self.call, _Made()
        rule = RuleName("custom_vjp (bwd)", rules.bwd, call.name)

        def flat(*tracers: Any) -> list[Any]:
            _, arrays = _with_closed(self.closed, tracers)
            count = sum(self.computed)
            residuals = unflatten(self.tree, merged(self.computed, arrays[:count], self.numbers))
            cts = unflatten(call.out_tree, self._cotangents(nonzero, arrays[count:]))
            made.residuals = checked_cotangents(rule, call, rules.run_bwd(residuals, cts))
            return given(made.residuals)

        differentiable = [a for a in call.out_avals if is_differentiable(a)]
        ct_avals = chosen(differentiable, nonzero)
        values = [*self.values, *(None for _ in ct_avals)]
        with explaining(rule, AMONG_RESIDUALS):
            jaxpr, captured = build(flat, [*self.avals, *ct_avals], name_of(rules.bwd), None, values)
        return Pulled(close_over(jaxpr), captured, nonzero_of(made.residuals))

    def _cotangents(self, nonzero: Mask, arrays: Sequence[Any]) -> list[Any]:
        """One for every output: an array, or a zero of the kind that the user asked for."""
        marks, found = iter(nonzero), iter(arrays)
        return [
            next(found) if is_differentiable(a) and next(marks) else zero_tangent(a, self.symbolic_zeros)
            for a in self.call.out_avals
        ]
