"""linear_call: a linear function with a transpose of the user's own, and its primitive.

    linear_call: (values closed over, residuals, linear arguments) -> outputs

The transpose of the equation is the equation with its two jaxprs exchanged.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from xlamini.core import (
    Avals,
    Axis,
    CallLike,
    Dims,
    Jaxpr,
    Params,
    ShapedArray,
    ShapeError,
    Values,
    Zero,
    aval_of,
    first_difference,
    flatten_from_user,
    is_differentiable,
    is_linear,
    is_zero,
    keystr,
    tangent_aval,
    tree_flatten_with_path,
)
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.pytree import structure
from xlamini.interpreters.batch import batch
from xlamini.primitives import cast, zeros
from xlamini.primitives.base.batch_ops import with_batch_first
from xlamini.staging import ArgNames, HigherOrder, check_callable, checked_avals, name_of, rebuilt
from xlamini.staging.trace.tracing import trace
from xlamini.transforms.custom.custom_call import closed_over_both, with_unread


@api_boundary
def linear_call(
    fun: Callable[[Any, Any], Any], fun_transpose: Callable[[Any, Any], Any], residual_args: Any, linear_args: Any
) -> Any:
    """`fun(residual_args, linear_args)`, with the transpose `fun_transpose(residual_args, cotangent)`.

    `fun` is linear in its second argument. `fun_transpose` takes a cotangent of its output, and returns a cotangent of
    the structure, shapes and dtypes of `linear_args` (else TypeError, ShapeError); its own transpose is `fun`. There is
    no derivative in `residual_args`, nor in what the functions close over, which is a TypeError.

    >>> def scaled(x):
    ...     return linear_call(lambda r, x: x / r, lambda r, ct: 10 * ct / r, 4.0, x)
    >>> scaled(2.0), xlamini.grad(scaled)(2.0)
    (Array(0.5, dtype=float32, weak_type=True), Array(2.5, dtype=float32, weak_type=True))
    """
    check_callable("linear_call", fun)
    check_callable("linear_call", fun_transpose)
    leaves, tree = flatten_from_user(((residual_args, linear_args), {}))
    names, name = ArgNames(fun, tree), name_of(fun)
    avals = checked_avals(leaves, names, name)
    count = structure(residual_args).num_leaves
    traced = trace(fun, tree, avals, None, names, name)
    outs = traced.jaxpr.out_avals
    ct_tree = structure(((residual_args, rebuilt(traced.out_tree, outs)), {}))
    pulled = _Pullback(fun_transpose, linear_args, avals[count:])
    back = trace(pulled, ct_tree, [*avals[:count], *outs], None, ArgNames(fun_transpose, ct_tree), name_of(pulled))
    ours, theirs = traced.captured, back.captured
    flat = linear_call_p.bind(
        *ours,
        *theirs,
        *leaves,
        name=name,
        callee=with_unread(traced.jaxpr, len(ours), [aval_of(x) for x in theirs]),
        transposed=with_unread(back.jaxpr, 0, [aval_of(x) for x in ours]),
        num_res=len(ours) + len(theirs) + count,
    )
    return rebuilt(traced.out_tree, flat)


class _Pullback:
    """The user's transpose, with a check of what it returns: cotangents of the types of the linear arguments."""

    def __init__(self, fun: Callable[[Any, Any], Any], linear_args: Any, avals: Avals):
        self.fun, self.linear_args, self.avals = fun, linear_args, avals
        self.__name__ = name_of(fun)

    def __call__(self, residuals: Any, cotangent: Any) -> list[Any]:
        leaves, tree = flatten_from_user(self.fun(residuals, cotangent))
        expected = structure(self.linear_args)
        if tree != expected:
            where = first_difference(expected, tree, ("linear_args", f"the output of {self.__name__}"))
            raise TypeError(f"linear_call: {self.__name__} must return the structure of linear_args: {where}")
        return [self._typed(i, x, aval) for i, (x, aval) in enumerate(zip(leaves, self.avals, strict=True))]

    def _typed(self, index: int, x: Any, expected: ShapedArray) -> Any:
        found = aval_of(x)
        if found.shape != expected.shape or not (found.dtype == expected.dtype or found.weak_type):
            path = keystr(tree_flatten_with_path(self.linear_args)[0][index][0])
            error = TypeError if found.shape == expected.shape else ShapeError
            raise error(
                f"linear_call: linear_args{path} is {expected.str_long()}, but {self.__name__} returns a cotangent "
                f"{found.str_long()} for it; they must be of one type"
            )
        return cast(x, expected.dtype, expected.weak_type)


class LinearCall(CallLike, HigherOrder):
    """A call of `callee`, linear in the operands after the first `num_res`, with the transpose `transposed`."""

    name = "linear_call"
    called = "callee"

    def shape_rule(self, *avals: ShapedArray, callee: Jaxpr, **params: Any) -> list[ShapedArray]:
        return callee.out_avals

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        count = params["num_res"]
        if not all(map(is_zero, tangents[:count])):
            raise _not_linear(params)
        outs = self.bind(*primals, **params)
        moved = self.bind(*primals[:count], *map(_dense, primals[count:], tangents[count:]), **params)
        avals = params["callee"].out_avals
        return outs, [t if is_differentiable(a) else Zero(tangent_aval(a)) for t, a in zip(moved, avals, strict=True)]

    def transpose(self, cts: Values, *operands: Any, callee: Jaxpr, transposed: Jaxpr, **params: Any) -> list[Any]:
        count = params["num_res"]
        if any(map(is_linear, operands[:count])):
            raise _not_linear(params)
        dense = [zeros(a) if is_zero(ct) else ct for ct, a in zip(cts, callee.out_avals, strict=True)]
        found = self.bind(*operands[:count], *dense, callee=transposed, transposed=callee, **params)
        return [None] * count + [ct if is_linear(x) else None for ct, x in zip(found, operands[count:], strict=True)]

    def batch(
        self, axis: Axis, operands: Values, dims: Dims, *, callee: Jaxpr, transposed: Jaxpr, **params: Any
    ) -> Any:
        """All linear values are batched, at dimension 0, so that the two jaxprs stay each other's transposes."""
        count = params["num_res"]
        linear = with_batch_first(operands[count:], dims[count:], axis.size)
        residual_dims = tuple(dims[:count])
        ins, outs = len(linear), len(callee.outvars)
        forward, _ = batch(callee, axis, (*residual_dims, *[0] * ins), (True,) * outs)
        backward, _ = batch(transposed, axis, (*residual_dims, *[0] * outs), (True,) * ins)
        return self.bind(*operands[:count], *linear, callee=forward, transposed=backward, **params), [0] * outs

    def lower(self, ctx: Any, *operands: Any, callee: Jaxpr, **params: Any) -> Any:
        return ctx.call(callee, operands, callee.name)

    def checked(self, errors: frozenset[str], operands: Values, **params: Any) -> Any:
        from xlamini.staging.call.check import errors_beside  # for those who check only

        return self.bind(*operands, **params), errors_beside(params["callee"], errors, operands)

    def with_captured(self, operands: Values, params: Params) -> Any:
        callee, transposed, captured = closed_over_both(params["callee"], params["transposed"])
        closed = {"callee": callee, "transposed": transposed, "num_res": params["num_res"] + len(captured)}
        return [*captured, *operands], {**params, **closed}


linear_call_p: Final = LinearCall()


def _dense(primal: Any, tangent: Any) -> Any:
    """A tangent as an array of the primal's type, which the function takes."""
    return zeros(aval_of(primal)) if is_zero(tangent) else tangent


def _not_linear(params: Params) -> TypeError:
    return TypeError(
        f"linear_call: {params['name']} is differentiated in a residual argument, or in a value that it closes over, "
        "where it need not be linear; pass the value in linear_args, or hold it fixed with lax.stop_gradient"
    )
