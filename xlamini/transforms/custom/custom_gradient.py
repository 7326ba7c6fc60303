"""custom_gradient: a function that returns its value together with the function that pulls cotangents back."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.jaxpr import Jaxpr, close_over
from xlamini.core.pytree import flatten_from_user, register_pytree_node, unflatten
from xlamini.core.tangents import is_differentiable
from xlamini.core.tracer import aval_of, build
from xlamini.interpreters.evaluate import evaluate
from xlamini.staging.call.higher_order import given, nonzero_of, with_none
from xlamini.staging.trace.arguments import ArgNames, check_callable, name_of
from xlamini.transforms.custom.custom_vjp import custom_vjp
from xlamini.transforms.custom.rule_checks import RuleName, explaining
from xlamini.transforms.custom.symbolic_zero import zero_tangent
from xlamini.transforms.custom.user_vjp import Signature
from xlamini.transforms.custom.vjp_checks import checked_cotangents


def custom_gradient(fun: Callable[..., Any]) -> custom_vjp:
    """A function whose gradient is given along with its value; forward mode is not defined. A decorator.

    `fun(*args)` returns a pair `(value, pull)`, where `pull(cotangent of the value)` returns a tuple with a cotangent
    for each argument (None for zeros), or just the cotangent if there is one argument. It may close over what `fun`
    computed. TypeError if `fun` returns no such pair, and where a cotangent does not fit its argument.

    >>> @custom_gradient
    ... def f(x):
    ...     return x ** 2, lambda ct: (10 * ct * x,)
    >>> xlamini.grad(f)(3.0)
    Array(30., dtype=float32, weak_type=True)
    """
    check_callable("custom_gradient", fun)

    @functools.wraps(fun)
    def value(*args: Any) -> Any:
        return _pair(fun, fun(*args))[0]

    def fwd(*args: Any) -> tuple[Any, Any]:
        out, pull = _pair(fun, fun(*args))
        return out, _traced(pull, _signature(fun, args, out))

    def bwd(pull: Pull, ct: Any) -> Any:
        return pull(ct)

    fwd.__wrapped__ = bwd.__wrapped__ = fun  # type: ignore[attr-defined]
    wrapped = custom_vjp(value)
    wrapped.defvjp(fwd, bwd)
    return wrapped


def _pair(fun: Callable[..., Any], result: Any) -> tuple[Any, Any]:
    if isinstance(result, tuple | list) and len(result) == 2 and callable(result[1]):
        return result[0], result[1]
    what = f"of {', '.join(type(x).__name__ for x in result)}" if isinstance(result, tuple | list) else "alone"
    raise TypeError(
        f"custom_gradient: {name_of(fun)} must return a pair (value, function from its cotangent to those of the "
        f"arguments), but it returned a {type(result).__name__} {what}"
    )


def _signature(fun: Callable[..., Any], args: Sequence[Any], out: Any) -> Signature:
    (leaves, in_tree), (outs, out_tree) = flatten_from_user((tuple(args), {})), flatten_from_user(out)
    avals, out_avals = tuple(map(aval_of, leaves)), tuple(map(aval_of, outs))
    return Signature(name_of(fun), in_tree, avals, out_tree, out_avals, ArgNames(fun, in_tree))


class Pull:
    """A user's pullback as a jaxpr of (values it captured, cotangents): a pytree of these values.

    It returns the cotangents of the arguments marked in `nonzero`.
    """

    def __init__(self, captured: Sequence[Any], jaxpr: Jaxpr, nonzero: Sequence[bool], call: Signature):
        self.captured, self.jaxpr, self.nonzero, self.call = captured, jaxpr, nonzero, call

    def __call__(self, ct: Any) -> Any:
        slopes = [x for x in flatten_from_user(ct)[0] if is_differentiable(aval_of(x))]
        found = evaluate(self.jaxpr, [*self.captured, *slopes])
        return unflatten(self.call.in_tree, with_none(self.nonzero, found))[0]


register_pytree_node(
    Pull, lambda p: (p.captured, (p.jaxpr, p.nonzero, p.call)), lambda of, captured: Pull(captured, *of)
)


def _traced(pull: Callable[..., Any], call: Signature) -> Pull:
    """The user's pullback, checked."""
    name = RuleName("custom_gradient", pull, call.name)
    found: list[Any] = []

    def flat(*slopes: Any) -> list[Any]:
        rest = iter(slopes)
        cts = [next(rest) if is_differentiable(a) else zero_tangent(a, False) for a in call.out_avals]
        result = pull(unflatten(call.out_tree, cts))
        every = checked_cotangents(name, call, result if isinstance(result, tuple | list) else (result,))
        found.extend(every)
        return given(every)

    with explaining(name):
        jaxpr, captured = build(flat, [a for a in call.out_avals if is_differentiable(a)], name_of(pull))
    return Pull(captured, close_over(jaxpr), nonzero_of(found), call)
