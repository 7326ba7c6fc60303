"""custom_jvp: a function with a forward-mode derivative that the user writes, and its primitive."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import and_
from typing import Any, Final

from xlamini.core import (
    Axis,
    Dims,
    Params,
    Values,
    api_boundary_methods,
    aval_of,
    flatten,
    float0,
    is_differentiable,
    tangent_aval,
    tree_map,
    unflatten,
)
from xlamini.core.errors.frames import is_own
from xlamini.interpreters.batch import batch
from xlamini.primitives import convert
from xlamini.primitives.base.elementwise import add_any
from xlamini.staging import check_callable, name_of
from xlamini.staging.trace.static_args import Names, Numbers
from xlamini.transforms.custom.custom_call import RuledCall
from xlamini.transforms.custom.custom_function import CustomCallTrace, CustomFunction, P, R, Rule
from xlamini.transforms.custom.jvp_rule import BatchedJvp, JvpRule, UserJvp, batched_tangents
from xlamini.transforms.custom.rule_contract import Contract, types_of
from xlamini.transforms.custom.symbolic_zero import SymbolicZero, zero_tangent


class custom_jvp(CustomFunction[P, R]):
    """A function whose derivative is given by a rule, set with `defjvp` or `defjvps`. A decorator.

    The positional arguments in `nondiff_argnums` (or named in `nondiff_argnames`) are passed to Python as they are:
    functions, options. All others are arrays, numbers, or containers of them. Keyword arguments are put in their
    places; keyword-only ones have none, which is a TypeError. Values that the function closes over are constants:
    taking a derivative in one is an error.

    >>> @custom_jvp
    ... def f(x, y):
    ...     return xlamini.numpy.sin(x) * y
    >>> @f.defjvp
    ... def f_jvp(primals, tangents):
    ...     (x, y), (x_dot, y_dot) = primals, tangents
    ...     return f(x, y), xlamini.numpy.cos(x) * x_dot * y + xlamini.numpy.sin(x) * y_dot
    >>> xlamini.grad(f)(0.0, 3.0)
    Array(3., dtype=float32, weak_type=True)
    """

    what = "custom_jvp"
    setter = "defjvp(rule)"

    def __init__(self, fun: Callable[P, R], nondiff_argnums: Numbers = (), nondiff_argnames: Names = ()):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros: bool = False

    def defjvp(self, jvp: Rule, symbolic_zeros: bool = False) -> Rule:
        """Set the rule `jvp(primals, tangents) -> (output, tangent of the output)`; returns it. A decorator.

        The arguments in `nondiff_argnums` come before the two tuples. The rule must be linear in the tangents. A
        tangent has the type of its primal, float0 if that is not a float; one that is symbolically zero is an array of
        zeros, or with `symbolic_zeros` a `SymbolicZero`. The rule is traced and checked when a derivative is first
        taken: TypeError unless it returns a pair, both of the structure, shapes and dtypes of the function's output.
        """
        check_callable("custom_jvp: defjvp", jvp)
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set one rule for each argument, `jvp(tangent, output, *primals) -> tangent of the output`; None means zero.

        The sum of what they return is the tangent. TypeError for a function with `nondiff_argnums`, ValueError unless
        there are as many rules as arguments.

        >>> f = custom_jvp(lambda x, n: x * n)
        >>> f.defjvps(lambda x_dot, out, x, n: n * x_dot, None)
        >>> xlamini.grad(f, argnums=(0, 1))(2.0, 3.0)
        (Array(3., dtype=float32, weak_type=True), Array(0., dtype=float32, weak_type=True))
        """
        name = name_of(self.fun)
        if self.nondiff_argnums:
            raise TypeError(
                f"custom_jvp: defjvps does not serve {name}, which has nondiff_argnums; write one rule with defjvp"
            )
        for jvp in jvps:
            if jvp is not None:
                check_callable("custom_jvp: defjvps", jvp)
        parameters = self._signature.parameters.values() if self._signature is not None else ()
        if parameters and not any(p.kind is p.VAR_POSITIONAL for p in parameters):
            _check_count(name, len(jvps), len(parameters))
        self.defjvp(_sum_of_rules(self, jvps), symbolic_zeros=True)

    def _rules(self) -> list[Any]:
        return [] if self.jvp is None else [self.jvp]

    def _bind(self, call: CustomCallTrace) -> list[Any]:
        assert self.jvp is not None
        contract = Contract(self.what, self.jvp, call.site.types)
        rule = UserJvp(contract, self.symbolic_zeros, call.site)
        rule.trace_early([*call.closed, *call.leaves])
        return custom_jvp_call_p.bind(
            *call.operands,
            name=call.site.types.name,
            call_jaxpr=call.jaxpr,
            jvp=rule,
            captured=call.captured,
            symbolic_zeros=self.symbolic_zeros,
        )


api_boundary_methods(custom_jvp)


class CustomJVPCall(RuledCall):
    """A call whose derivative is given by the user's rule; its operands are those after the captured values."""

    name = "custom_jvp_call"
    called = "call_jaxpr"

    def jvp(self, primals: Values, tangents: Values, *, jvp: JvpRule, **params: Any) -> Any:
        start = self.num_captured(tangents, params)
        return jvp.pushed(primals[start:], tangents[start:])

    def batch(
        self, axis: Axis, operands: Values, dims: Dims, *, jvp: JvpRule, **params: Any
    ) -> Any:
        # A tangent may be batched where its output is not, so what has one is batched; all at dimension 0.
        jaxpr = params["call_jaxpr"]
        _, found = batch(jaxpr, axis, tuple(dims))
        own = dims[len(params["captured"]) :]
        moving = [d is None and is_differentiable(a) for d, a in zip(found, jaxpr.out_avals, strict=True)]
        if any(moving):  # such as a sum over the axis
            moving = list(map(and_, moving, batched_tangents(jvp, axis, own, jaxpr.in_avals[-len(own) :]) or moving))
        force = tuple(d is not None or m for d, m in zip(found, moving, strict=True))
        batched, out_dims = batch(jaxpr, axis, tuple(dims), force)
        rule = BatchedJvp(jvp, axis, own, force)
        return self.bind(*operands, **{**params, "call_jaxpr": batched, "jvp": rule}), out_dims

    def linearize(self, primals: Values, tangents: Values, *, jvp: JvpRule, **params: Any) -> Any:
        start = self.num_captured(tangents, params)
        return jvp.linearized(primals[start:], tangents[start:])

    def has_own_jvp(self, params: Params) -> bool:
        return True


custom_jvp_call_p: Final = CustomJVPCall()


# --- one rule for each argument


def _sum_of_rules(fun: custom_jvp, rules: Sequence[Callable[..., Any] | None]) -> Callable[..., Any]:
    """The rule that adds up what the rules of single arguments give; it takes symbolic zeros."""
    name = name_of(fun.fun)

    def jvp(primals: Values, tangents: Values) -> tuple[Any, Any]:
        _check_count(name, len(rules), len(primals))
        out = fun(*primals)
        types = types_of(fun.fun, primals, out)
        total: list[Any] = [SymbolicZero(tangent_aval(a)) for a in types.out_avals]
        for rule, tangent in zip(rules, tangents, strict=True):
            if rule is not None and not all(isinstance(t, SymbolicZero) for t in flatten(tangent)[0]):
                slope = rule(_dense(tangent), out, *primals)
                total = list(map(_added, total, Contract("custom_jvp", rule, types).tangents(slope)))
        return out, unflatten(types.out_tree, total)

    given = [rule for rule in rules if rule is not None]
    # The rule that errors name; a user's, if there is one, since a program with a library's is not rewritten again.
    jvp.__wrapped__ = min(given, key=is_own, default=fun.fun)  # type: ignore[attr-defined]
    return jvp


def _added(total: Any, slope: Any) -> Any:
    if isinstance(slope, SymbolicZero) or aval_of(slope).dtype == float0:
        return total
    slope = convert(slope, aval_of(slope).dtype)
    return slope if isinstance(total, SymbolicZero) else add_any(total, slope)


def _dense(tangent: Any) -> Any:
    """A tangent of which some leaves, but not all, may be symbolic zeros."""
    return tree_map(lambda t: zero_tangent(t.aval, False) if isinstance(t, SymbolicZero) else t, tangent)


def _check_count(name: str, rules: int, arguments: int) -> None:
    if rules != arguments:
        raise ValueError(
            f"custom_jvp: defjvps got {rules} rules, but {name} takes {arguments} arguments; give one for each, None "
            "where the derivative is zero"
        )
