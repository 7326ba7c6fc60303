"""custom_jvp: a function with a derivative that the user writes, in forward mode; reverse mode is its transpose."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.dtypes import float0
from xlamini.core.edges import edge_methods
from xlamini.core.errors import UnexpectedTracerError
from xlamini.core.jaxpr import Jaxpr, close_over
from xlamini.core.primitive import Axis
from xlamini.core.pytree import flatten, tree_map, unflatten
from xlamini.core.tangents import is_differentiable, is_linear, tangent_aval
from xlamini.core.tracer import aval_of, state
from xlamini.interpreters.batch import batch
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.transpose import transpose
from xlamini.primitives.convert import convert
from xlamini.primitives.elementwise import add_any
from xlamini.transforms.arguments import check_callable, name_of
from xlamini.transforms.custom.jvp_rule import JvpRule, UserJvp
from xlamini.transforms.custom.rules import (
    RuleName,
    SymbolicZero,
    captured_names,
    checked_tree,
    checked_types,
    closed_over,
    halves,
    positional,
    signature_of,
    traced_call,
    with_ignored,
    zero_tangent,
)
from xlamini.transforms.higher_order import HigherOrder, chosen, given, inverse, nonzero_of, with_none
from xlamini.transforms.statics import Names, Numbers, Selected
from xlamini.transforms.tracing import rebuilt


class custom_jvp:
    """A function whose derivative is given by a rule, set with `defjvp` or `defjvps`. A decorator.

    The positional arguments in `nondiff_argnums` (or named in `nondiff_argnames`) are passed to Python as they are:
    functions, options. All others are arrays, numbers, or containers of them. Keyword arguments are put in their
    places; keyword-only ones have none, which is a TypeError. Values that the function closes over are held for
    constants: taking a derivative in one is an error.

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

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Numbers = (), nondiff_argnames: Names = ()):
        check_callable("custom_jvp", fun)
        functools.update_wrapper(self, fun)
        self.fun, self.symbolic_zeros = fun, False
        self.jvp: Callable[..., Any] | None = None
        self.nondiff_argnums = Selected("nondiff", fun, nondiff_argnums, nondiff_argnames, "custom_jvp").nums

    def defjvp(self, jvp: Callable[..., tuple[Any, Any]], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule `jvp(primals, tangents) -> (output, tangent of the output)`; returns it. A decorator.

        The arguments in `nondiff_argnums` come before the two tuples. The rule must be linear in the tangents. A
        tangent has the type of its primal, float0 if that is not a float; one that is zero for sure is an array of
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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self.jvp is None:
            name = name_of(self.fun)
            raise AttributeError(
                f"custom_jvp: {name} has no rule yet; set one before it is called, with {name}.defjvp(rule)"
            )
        every = positional("custom_jvp", name_of(self.fun), self._signature, args, kwargs)
        return self.fun(*every) if state.builder is None else self._staged(self.jvp, every)

    @functools.cached_property
    def _signature(self) -> inspect.Signature | None:
        return signature_of(self.fun)

    def _staged(self, rule: Callable[..., Any], args: Sequence[Any]) -> Any:
        """The call as an equation of the program being traced."""
        call = traced_call("custom_jvp", self.fun, self.nondiff_argnums, args)
        jaxpr, captured, closed = call.traced.jaxpr, call.traced.captured, closed_over(rule, call.fixed)
        outs = custom_jvp_call_p.bind(
            *captured,
            *closed,
            *call.leaves,
            name=call.name,
            call_jaxpr=with_ignored(jaxpr, len(captured), [x.aval for x in closed]),
            jvp=UserJvp("custom_jvp", rule, self.symbolic_zeros, call, closed),
            captured=captured_names(self.fun, captured),
            symbolic_zeros=self.symbolic_zeros,
        )
        return rebuilt(call.traced.out_tree, outs)


edge_methods(custom_jvp)


class CustomJVPCall(HigherOrder):
    """A call whose derivative is what the user's rule says.

    The first operands are values that the function captured, named in `captured`; the rule does not see them.
    """

    name = "custom_jvp_call"
    called = "call_jaxpr"

    def shape_rule(self, *avals: ShapedArray, call_jaxpr: Jaxpr, **params: Any) -> list[ShapedArray]:
        return call_jaxpr.out_avals

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, jvp: JvpRule, **params: Any) -> Any:
        start = _check_captured(tangents, **params)
        return jvp.pushed(primals[start:], tangents[start:])

    def transpose(self, cts: Sequence[Any], *operands: Any, call_jaxpr: Jaxpr, **params: Any) -> list[Any]:
        """The transpose of the function itself, as nobody has asked for a derivative."""
        linear = tuple(is_linear(x) for x in operands)
        backward, nonzero_out = transpose(call_jaxpr, linear, nonzero_of(cts))
        outs = evaluate(backward, [*chosen(operands, inverse(linear)), *given(cts)])
        return with_none(linear, with_none(nonzero_out, outs))

    def batch(
        self,
        axis: Axis,
        operands: Sequence[Any],
        dims: Sequence[int | None],
        *,
        call_jaxpr: Jaxpr,
        jvp: JvpRule,
        **params: Any,
    ) -> Any:
        # A tangent may be batched where its output is not, so what has one is batched; all at dimension 0.
        _, found = batch(call_jaxpr, axis, tuple(dims))
        force = tuple(d is not None or is_differentiable(a) for d, a in zip(found, call_jaxpr.out_avals, strict=True))
        batched, out_dims = batch(call_jaxpr, axis, tuple(dims), force)
        rule = jvp.batched(axis, dims[len(params["captured"]) :], force)
        return self.bind(*operands, **{**params, "call_jaxpr": batched, "jvp": rule}), out_dims

    def lower(self, ctx: Any, *operands: Any, call_jaxpr: Jaxpr, name: str, **params: Any) -> Any:
        return ctx.body(call_jaxpr, operands, name)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, jvp: JvpRule, **params: Any) -> Any:
        start = _check_captured(tangents, **params)
        return jvp.linearized(primals[start:], tangents[start:])

    def partial_eval(self, unknown: Sequence[bool], operands: Sequence[Any], **params: Any) -> Any:
        """In the open, without the rule, if that makes some outputs known; this is how a rule's own derivative is."""
        found = halves(params["call_jaxpr"], unknown, operands)
        return self.bind(*operands, **params) if found is None else found

    def with_captured(self, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        jaxpr = params["call_jaxpr"]
        captured = (*captured_names(None, jaxpr.consts), *params["captured"])
        return [*jaxpr.consts, *operands], {**params, "call_jaxpr": close_over(jaxpr), "captured": captured}

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        return {"name": params["name"], **{k: v for k, v in sorted(params.items()) if k != "captured"}}


custom_jvp_call_p = CustomJVPCall()


def _check_captured(tangents: Sequence[Any], *, captured: Sequence[str], name: str, **params: Any) -> int:
    """How many values the function captured; an error if one of them is being differentiated."""
    moving = chosen(captured, nonzero_of(tangents[: len(captured)]))
    if moving:
        raise UnexpectedTracerError(
            f"custom_jvp: {name} closes over {moving[0]}, which is being differentiated, but its rule gives "
            "derivatives in its arguments alone; make the value an argument (xlamini.closure_convert finds such "
            "values), or hold it fixed with lax.stop_gradient"
        )
    return len(captured)


# --- one rule for each argument


def _sum_of_rules(fun: custom_jvp, rules: Sequence[Callable[..., Any] | None]) -> Callable[..., Any]:
    """The rule that adds up what the rules of single arguments give; it takes symbolic zeros."""
    name = name_of(fun.fun)

    def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        _check_count(name, len(rules), len(primals))
        out = fun(*primals)
        leaves, tree = flatten(out)
        total: list[Any] = [SymbolicZero.from_primal_value(x) for x in leaves]
        for rule, tangent in zip(rules, tangents, strict=True):
            if rule is not None and not all(isinstance(t, SymbolicZero) for t in flatten(tangent)[0]):
                slopes = _slopes(RuleName("custom_jvp", rule, name), tree, leaves, rule(_dense(tangent), out, *primals))
                total = list(map(_added, total, slopes))
        return out, unflatten(tree, total)

    jvp.__wrapped__ = next((r for r in rules if r is not None), fun.fun)  # type: ignore[attr-defined]
    return jvp


def _slopes(rule: RuleName, tree: Any, leaves: Sequence[Any], slope: Any) -> list[Any]:
    """What the rule of one argument returned, checked and flat."""
    wanted = [tangent_aval(aval_of(x)) for x in leaves]
    slopes = checked_tree(rule, "tangent output", slope, tree)
    checked_types(rule, "tangent output", slopes, tree, wanted, "the tangent of the output there")
    return slopes


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
