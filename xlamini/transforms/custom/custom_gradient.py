"""custom_gradient: a function that returns its value together with the function that pulls cotangents back."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.jaxpr import Jaxpr
from xlamini.core.pytree import flatten_from_user, register_pytree_node, unflatten
from xlamini.core.tracer import aval_of, build
from xlamini.interpreters.evaluate import evaluate
from xlamini.transforms.arguments import check_callable, check_outputs, name_of
from xlamini.transforms.custom.custom_vjp import custom_vjp


def custom_gradient(fun: Callable[..., Any]) -> Any:
    """A function whose gradient is given along with its value; forward mode is not defined.

    `fun(*args)` returns a pair `(value, pull)`, where `pull(cotangent of the value)` returns a tuple with a cotangent
    for each argument, or just the cotangent if there is one argument. A decorator. TypeError if `fun` returns no pair.

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
        return out, _traced(fun, pull, out)

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


class Pull:
    """A user's pullback as a jaxpr: a pytree of the values that it captured."""

    def __init__(self, captured: Sequence[Any], jaxpr: Jaxpr, tree: Any):
        self.captured, self.jaxpr, self.tree = captured, jaxpr, tree

    def __call__(self, ct: Any) -> Any:
        program = self.jaxpr.replace(consts=list(self.captured))
        cts = unflatten(self.tree, evaluate(program, flatten_from_user(ct)[0]))
        return tuple(cts) if isinstance(cts, tuple | list) else (cts,)


register_pytree_node(Pull, lambda p: (p.captured, (p.jaxpr, p.tree)), lambda of, captured: Pull(captured, *of))


def _traced(fun: Callable[..., Any], pull: Callable[..., Any], out: Any) -> Pull:
    """The pullback for cotangents of this output."""
    leaves, out_tree = flatten_from_user(out)
    tree: Any = None

    def flat(*cts: Any) -> list[Any]:
        nonlocal tree
        found, tree = flatten_from_user(pull(unflatten(out_tree, cts)))
        check_outputs(found, tree, f"the pullback of {name_of(fun)}")
        return found

    jaxpr, captured = build(flat, [aval_of(x) for x in leaves], name_of(pull))
    return Pull(captured, jaxpr.replace(consts=[]), tree)
