"""custom_gradient: a function that returns its value together with the function that pulls cotangents back."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, overload

from xlamini.core import close_over, flatten_from_user, is_differentiable, unflatten
from xlamini.core.pytree.nodes import Partial
from xlamini.core.tracing.tracer import build
from xlamini.core.wrapping import wraps
from xlamini.interpreters.evaluate import evaluate
from xlamini.staging import check_callable, chosen, given, inverse, merged, name_of, nonzero_of, with_none
from xlamini.transforms.custom.accumulators import ArgumentTypes
from xlamini.transforms.custom.custom_function import P, R
from xlamini.transforms.custom.custom_vjp import custom_vjp
from xlamini.transforms.custom.rule_contract import CallTypes, Contract, types_of
from xlamini.transforms.custom.symbolic_zero import zero_tangent


@overload
def custom_gradient(fun: Callable[P, tuple[R, Any]], *, with_accums: Any = None) -> custom_vjp[P, R]: ...
@overload
def custom_gradient(
    fun: None = None, *, with_accums: Any = None
) -> Callable[[Callable[P, tuple[R, Any]]], custom_vjp[P, R]]: ...
def custom_gradient(fun: Any = None, *, with_accums: Any = None) -> Any:
    """A function whose gradient is given along with its value; forward mode is not defined. A decorator.

    `fun(*args)` returns a pair `(value, pull)`, where `pull(cotangent of the value)` returns a tuple with a cotangent
    for each argument (None for zeros), or just the cotangent if there is one argument. It may close over what `fun`
    computed. TypeError if `fun` returns no such pair, and where a cotangent does not fit its argument.

    With `with_accums` it is `pull(cotangent, *accumulators)`, as in `custom_vjp.defvjp_with_accums`. JAX asks which
    kinds of accumulators there shall be, such as `ValAccum`; here all are ValAccums.

    >>> @custom_gradient
    ... def f(x):
    ...     return x ** 2, lambda ct: (10 * ct * x,)
    >>> xlamini.grad(f)(3.0)
    Array(30., dtype=float32, weak_type=True)
    """
    if fun is None:
        return functools.partial(custom_gradient, with_accums=with_accums)
    check_callable("custom_gradient", fun)

    @wraps(fun)
    def value(*args: Any, **kwargs: Any) -> Any:
        return _pair(fun, fun(*args, **kwargs))[0]

    def fwd(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        out, pull = _pair(fun, fun(*args, **kwargs))
        if with_accums is not None:
            pull = _to_values(pull, ArgumentTypes.of(args))
        return out, _traced(pull, types_of(fun, args, out))

    def bwd(pull: Partial, ct: Any) -> Any:
        return pull(ct)

    fwd.__wrapped__ = bwd.__wrapped__ = fun  # type: ignore[attr-defined]
    wrapped = custom_vjp(value)
    wrapped.defvjp(fwd, bwd)
    return wrapped


def _to_values(pull: Callable[..., Any], types: ArgumentTypes) -> Callable[..., Any]:
    return wraps(pull)(lambda ct: types.cotangents(functools.partial(pull, ct)))


def _pair(fun: Callable[..., Any], result: Any) -> tuple[Any, Any]:
    if isinstance(result, tuple | list) and len(result) == 2 and callable(result[1]):
        return result[0], result[1]
    what = f"of {', '.join(type(x).__name__ for x in result)}" if isinstance(result, tuple | list) else "alone"
    raise TypeError(
        f"custom_gradient: {name_of(fun)} must return a pair (value, function from its cotangent to those of the "
        f"arguments), but it returned a {type(result).__name__} {what}"
    )


def _traced(pull: Callable[..., Any], call: CallTypes) -> Partial:
    """The user's pullback, checked and traced, as a pytree of the values that it captured."""
    contract, differentiable = Contract("custom_gradient", pull, call), list(map(is_differentiable, call.out_avals))
    found: list[Any] = []

    def flat(*slopes: Any) -> list[Any]:
        zeros = [zero_tangent(a, False) for a in chosen(call.out_avals, inverse(differentiable))]
        result = pull(unflatten(call.out_tree, merged(differentiable, slopes, zeros)))
        found.extend(contract.bwd(result if isinstance(result, tuple | list) else (result,)))
        return given(found)

    def pulled(*operands: Any) -> tuple[Any, ...]:
        *captured, ct = operands
        slopes = chosen(flatten_from_user(ct)[0], differentiable)
        return call.args(with_none(nonzero_of(found), evaluate(close_over(jaxpr), [*captured, *slopes])))

    with contract.explaining():
        jaxpr, captured = build(flat, chosen(call.out_avals, differentiable), name_of(pull))
    return Partial(pulled, *captured)
