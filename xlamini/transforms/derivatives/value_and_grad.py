"""Reverse mode for scalar functions: grad and value_and_grad.

The function is traced once and linearized, and its linear part is transposed. Outside jit the result runs as one
program.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, ParamSpec, TypeVar, overload

from xlamini.core import Jaxpr, ShapedArray, ShapeError, Values, Zero, cotangent_aval, is_differentiable, unflatten
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.pytree.diff import LEAF
from xlamini.core.wrapping import wraps
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.linearize import linearize
from xlamini.primitives import full, instantiated
from xlamini.staging import Mask, Trace, check_callable, describe_as, name_of, rebuilt, transformed
from xlamini.transforms.derivatives.diff_args import Argnums, DiffArgs
from xlamini.transforms.derivatives.pullback import (
    as_gradients,
    evaluated,
    has_rules,
    pull_back,
    pull_back_at,
    runs_in_place,
)

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


def value_and_grad(
    fun: Callable[P, R],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[R, Any]]:
    """A function that returns the value of `fun` and its gradient in the arguments `argnums`.

    `fun` returns a scalar, or with `has_aux` a pair (scalar, auxiliary data). A gradient has the structure, shapes and
    dtypes of the argument. `holomorphic` allows complex arguments of a holomorphic function; `allow_int` allows integer
    arguments, whose gradients have dtype float0. Raises TypeError for other arguments or outputs without a derivative.

    >>> xlamini.value_and_grad(lambda x: x ** 2)(3.0)
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """

    check_callable("value_and_grad", fun)

    @api_boundary
    @wraps(fun)
    def value_and_grad_of(*args: Any, **kwargs: Any) -> tuple[Any, Any]:
        diff = DiffArgs(fun, argnums, args, kwargs, "grad")
        value, aux, gradient = _differentiate(diff, has_aux, holomorphic, allow_int)
        return ((value, aux) if has_aux else value), gradient

    text = f"The value of {name_of(fun)} and its gradient with respect to the positional argument(s) {argnums}."
    return describe_as(value_and_grad_of, f"{text} It takes the same arguments.", fun)


@overload
def grad(
    fun: Callable[P, tuple[Any, A]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, tuple[Any, A]]: ...
@overload
def grad(
    fun: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[P, Any]: ...
def grad(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
    reduce_axes: Sequence[Any] = (),
) -> Callable[..., Any]:
    """A function that returns the gradient of `fun`: `value_and_grad` without the value.

    With `has_aux` it returns a pair (gradient, auxiliary data).

    >>> xlamini.grad(xlamini.numpy.sin)(0.0)
    Array(1., dtype=float32, weak_type=True)
    """

    check_callable("grad", fun)

    @api_boundary
    @wraps(fun)
    def grad_of(*args: Any, **kwargs: Any) -> Any:
        diff = DiffArgs(fun, argnums, args, kwargs, "grad")
        _, aux, gradient = _differentiate(diff, has_aux, holomorphic, allow_int)
        return (gradient, aux) if has_aux else gradient

    text = f"The gradient of {name_of(fun)} with respect to the positional argument(s) {argnums}."
    return describe_as(grad_of, f"{text} It takes the same arguments.", fun)


def _differentiate(
    diff: DiffArgs, has_aux: bool, holomorphic: bool, allow_int: bool
) -> tuple[Any, Any, Any]:
    """The value, the auxiliary data and the gradient."""
    _check_inputs(diff, holomorphic, allow_int)
    traced = diff.trace(has_aux)
    _check_value(diff, traced, holomorphic)
    flat = _flat_gradient(traced.jaxpr, diff.nonzero(traced), diff.operands(traced))
    count = len(traced.jaxpr.outvars)
    outs, cts = flat[:count], flat[count:]
    gradients = rebuilt(diff.tree, as_gradients(diff.avals, cts))
    value, aux = diff.split(traced, outs)
    return value, aux, gradients[0] if diff.single else gradients


def _flat_gradient(jaxpr: Jaxpr, nonzero: Mask, operands: Values) -> list[Any]:
    """The outputs of `jaxpr`, and the gradient of the first one, as one program if no backward rule takes arrays."""
    lin = linearize(jaxpr, nonzero) if has_rules(jaxpr) else None
    if lin is None or not runs_in_place(lin):
        return transformed(_with_gradient, jaxpr, (nonzero,), operands)
    outs, residuals = evaluated(lin, operands)
    first, *others = map(cotangent_aval, jaxpr.out_avals)
    return [*outs, *map(instantiated, pull_back_at(lin, residuals, [full(first, 1), *map(Zero, others)]))]


def _with_gradient(jaxpr: Jaxpr, nonzero: Mask, operands: Values) -> list[Any]:
    """The outputs of `jaxpr`, and the gradient of the first one: the cotangents of its inputs for the cotangent 1."""
    lin = linearize(jaxpr, nonzero)
    outs, residuals = lin.split_outputs(operands, evaluate(lin.primal, operands))
    first, *others = map(cotangent_aval, jaxpr.out_avals)
    cts = [full(first, 1), *map(Zero, others)]
    return [*outs, *map(instantiated, pull_back(lin, residuals, cts))]


def _check_inputs(diff: DiffArgs, holomorphic: bool, allow_int: bool) -> None:
    for i, aval in enumerate(diff.avals):
        complex_input = aval.dtype.kind == "c"
        if holomorphic and not complex_input:
            raise TypeError(
                f"grad with holomorphic=True takes complex arguments, but {diff.names[i]!r} of {diff.fun_name} is "
                f"{aval.str_short(short_dtypes=False)}; convert it with .astype('complex64')"
            )
        if not (allow_int or is_differentiable(aval)):
            raise TypeError(
                f"grad requires real- or complex-valued inputs, but {diff.names[i]!r} of {diff.fun_name} is "
                f"{aval.str_short(short_dtypes=False)}; pass a float, choose other argnums, or allow_int=True"
            )


def _check_value(diff: DiffArgs, traced: Trace, holomorphic: bool) -> None:
    """TypeError unless the function's output is one real scalar (complex if holomorphic)."""
    tree = traced.out_tree
    value, _ = unflatten(tree, [LEAF] * tree.num_leaves)
    if value is not LEAF:
        raise TypeError(
            f"Gradient only defined for scalar-output functions: {diff.fun_name} must return a scalar, but it returned "
            f"a {type(value).__name__}; return one number, and other results as auxiliary data with has_aux=True"
        )
    _check_scalar(diff, traced.jaxpr.outvars[0].aval, holomorphic)


def _check_scalar(diff: DiffArgs, aval: ShapedArray, holomorphic: bool) -> None:
    if aval.shape == () and is_differentiable(aval) and (aval.dtype.kind == "c") == bool(holomorphic):
        return
    shown = aval.str_short(short_dtypes=False)
    if aval.shape != ():
        raise ShapeError(
            f"Gradient only defined for scalar-output functions: {diff.fun_name} must return a scalar, but it returned "
            f"{shown}; reduce it, for example with .sum() or .mean(), or use xlamini.jacobian or xlamini.vjp"
        )
    if holomorphic and aval.dtype.kind != "c":
        raise TypeError(f"grad with holomorphic=True needs a complex output, but {diff.fun_name} returned {shown}")
    fix = "convert it with .astype"
    if aval.dtype.kind == "c":
        fix = "take its real part, or pass holomorphic=True if the function is holomorphic"
    raise TypeError(f"grad requires real-valued outputs, but {diff.fun_name} returned {shown}; {fix}")
