"""Jacobians and Hessians: jacfwd, jacrev, jacobian and hessian.

The function is traced once and linearized. jacfwd batches the tangent program over the standard basis of the inputs,
jacrev batches its transpose over the standard basis of the outputs.
"""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, ParamSpec, TypeVar, overload

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Jaxpr,
    ShapedArray,
    Values,
    is_differentiable,
    keystr,
    literal,
    tree_flatten_with_path,
    treedef_children,
    unflatten,
)
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.wrapping import wraps
from xlamini.interpreters.batch import batch
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.linearize import linearize
from xlamini.interpreters.transpose import transpose
from xlamini.primitives import add, broadcasted_iota, convert, eq, full, move_batch_dim, reshape, zeros
from xlamini.primitives.shape.concatenate import split
from xlamini.staging import Mask, check_callable, describe_as, name_of, rebuilt, transformed
from xlamini.transforms.derivatives.diff_args import Argnums, DiffArgs

P = ParamSpec("P")
A = TypeVar("A")


@overload
def jacfwd(
    fun: Callable[P, tuple[Any, A]], argnums: Argnums = 0, *, has_aux: Literal[True], holomorphic: bool = False
) -> Callable[P, tuple[Any, A]]: ...
@overload
def jacfwd(
    fun: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]: ...
def jacfwd(
    fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """The Jacobian of `fun` in the arguments `argnums`, column by column in forward mode.

    For an output of shape `m` and an argument of shape `n` it has shape `(*m, *n)`; good for few inputs.

    >>> xlamini.jacfwd(lambda x: x ** 2)(xlamini.numpy.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """

    check_callable("jacfwd", fun)

    @api_boundary
    @wraps(fun)
    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        diff = DiffArgs(fun, argnums, args, kwargs, "jacfwd")
        _check_inputs(diff, holomorphic)
        return _jacobian(diff, _by_columns, has_aux, holomorphic)

    text = f"The Jacobian of {name_of(fun)} with respect to the positional argument(s) {argnums}."
    return describe_as(jacobian_of, f"{text} It takes the same arguments.", fun)


@overload
def jacrev(
    fun: Callable[P, tuple[Any, A]],
    argnums: Argnums = 0,
    *,
    has_aux: Literal[True],
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, tuple[Any, A]]: ...
@overload
def jacrev(
    fun: Callable[P, Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]: ...
def jacrev(
    fun: Callable[..., Any],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[..., Any]:
    """The Jacobian of `fun` in the arguments `argnums`, row by row in reverse mode.

    For an output of shape `m` and an argument of shape `n` it has shape `(*m, *n)`; good for few outputs.

    >>> xlamini.jacrev(lambda x: x ** 2)(xlamini.numpy.array([1.0, 2.0]))
    Array([[2., 0.],
           [0., 4.]], dtype=float32)
    """

    check_callable("jacrev", fun)

    @api_boundary
    @wraps(fun)
    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        diff = DiffArgs(fun, argnums, args, kwargs, "jacrev")
        _check_inputs(diff, holomorphic, allow_int)
        return _jacobian(diff, _by_rows, has_aux, holomorphic)

    text = f"The Jacobian of {name_of(fun)} with respect to the positional argument(s) {argnums}."
    return describe_as(jacobian_of, f"{text} It takes the same arguments.", fun)


jacobian = jacrev


@overload
def hessian(
    fun: Callable[P, tuple[Any, A]], argnums: Argnums = 0, *, has_aux: Literal[True], holomorphic: bool = False
) -> Callable[P, tuple[Any, A]]: ...
@overload
def hessian(
    fun: Callable[P, Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[P, Any]: ...
def hessian(
    fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """The matrix of second derivatives of `fun`: `jacfwd` of `jacrev`.

    >>> xlamini.hessian(lambda x: x @ x)(xlamini.numpy.ones(2))
    Array([[2., 0.],
           [0., 2.]], dtype=float32)
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


def _jacobian(diff: DiffArgs, program: Callable[..., Any], has_aux: bool, holomorphic: bool) -> Any:
    """The pytree of Jacobian blocks, outputs outermost, and with `has_aux` the auxiliary data."""
    traced = diff.trace(has_aux)
    out_tree = treedef_children(traced.out_tree)[0]
    out_avals = traced.jaxpr.out_avals[: out_tree.num_leaves]
    _check_outputs(diff, out_tree, out_avals, holomorphic)
    flat = transformed(program, traced.jaxpr, (diff.nonzero(traced), len(out_avals)), diff.operands(traced))
    count = len(traced.jaxpr.outvars)
    _, aux = diff.split(traced, flat[:count])
    blocks = iter(flat[count:])
    rows = [_row(diff, aval, blocks) for aval in out_avals]
    result = unflatten(out_tree, rows)
    return (result, aux) if has_aux else result


def _row(diff: DiffArgs, out: ShapedArray, blocks: Iterator[Any]) -> Any:
    """The Jacobian blocks of one output; zeros for an argument that is not differentiable."""
    cells = [
        next(blocks) if is_differentiable(a) else zeros(ShapedArray((*out.shape, *a.shape), a.dtype))
        for a in diff.avals
    ]
    of_arguments = rebuilt(diff.tree, cells)
    return of_arguments[0] if diff.single else of_arguments


def _check_inputs(diff: DiffArgs, holomorphic: bool, allow_int: bool = False) -> None:
    """TypeError for an argument without such a Jacobian; jacrev accepts complex ones, as its basis is of outputs."""
    what = diff.what
    for i, aval in enumerate(diff.avals):
        is_complex, differentiable = aval.dtype.kind == "c", is_differentiable(aval)
        expected = "complex" if holomorphic else "real floating-point" if what == "jacfwd" else "floating-point"
        fits = is_complex if holomorphic else differentiable and not (is_complex and what == "jacfwd")
        if not fits and (differentiable or not allow_int):
            raise TypeError(
                f"{what} needs {expected} arguments, but {diff.names[i]!r} of {diff.fun_name} is "
                f"{aval.str_short(short_dtypes=False)}; convert it with .astype"
                + (", or pass holomorphic=True" if is_complex else "")
                + (", or pass allow_int=True" if what == "jacrev" and not (differentiable or holomorphic) else "")
            )


def _check_outputs(diff: DiffArgs, out_tree: Any, out_avals: Avals, holomorphic: bool) -> None:
    """TypeError for an output without such a Jacobian; jacfwd accepts any, as its basis is of arguments."""
    what = diff.what
    for i, aval in enumerate(out_avals):
        fits = aval.dtype.kind == "c" if holomorphic else what == "jacfwd" or _is_real(aval)
        if not fits:
            path, _ = tree_flatten_with_path(unflatten(out_tree, out_avals))[0][i]
            raise TypeError(
                f"{what}{' with holomorphic=True' if holomorphic else ''} needs "
                f"{'complex' if holomorphic else 'real floating-point'} outputs, but output{keystr(path)} of "
                f"{diff.fun_name} is {aval.str_short(short_dtypes=False)}"
                + ("; take its real part, or pass holomorphic=True" if aval.dtype.kind == "c" else "")
            )


def _is_real(aval: ShapedArray) -> bool:
    return is_differentiable(aval) and aval.dtype.kind != "c"


def _by_columns(jaxpr: Jaxpr, nonzero: Mask, count: int, operands: Values) -> list[Any]:
    """The outputs of `jaxpr`, and the Jacobian blocks of the first `count`, by a jvp along every input coordinate."""
    lin = linearize(jaxpr, nonzero)
    outs, residuals = lin.split_outputs(operands, evaluate(lin.primal, operands))
    ins = lin.tangent.in_avals[lin.num_residuals :]
    columns, axis = _map_basis(lin.tangent, residuals, ins)
    blocks: list[Any] = []
    for aval, nonzero_out in zip(jaxpr.out_avals[:count], lin.nonzero_out, strict=False):
        if nonzero_out:
            x, dim = next(columns)
            blocks += _cut(move_batch_dim(x, axis.size, dim, aval.ndim), aval.ndim, ins)
        else:
            blocks += [zeros(aval.update(shape=(*aval.shape, *a.shape))) for a in ins]
    shapes = ((*out.shape, *a.shape) for out in jaxpr.out_avals[:count] for a in ins)
    return [*outs, *map(reshape, blocks, shapes)]


def _by_rows(jaxpr: Jaxpr, nonzero: Mask, count: int, operands: Values) -> list[Any]:
    """The outputs of `jaxpr`, and the Jacobian blocks of the first `count`, by a vjp along every output coordinate."""
    lin = linearize(jaxpr, nonzero)
    outs, residuals = lin.split_outputs(operands, evaluate(lin.primal, operands))
    ins, out_avals = lin.tangent.in_avals[lin.num_residuals :], jaxpr.out_avals[:count]
    linear = (False,) * lin.num_residuals + (True,) * len(ins)
    nonzero_cts = tuple(i < count for i, nz in enumerate(lin.nonzero_out) if nz)
    backward, reached = transpose(lin.tangent, linear, nonzero_cts)
    rows, axis = _map_basis(backward, residuals, out_avals, lin.nonzero_out)
    blocks = []
    for aval, is_reached in zip(ins, reached, strict=True):
        if is_reached:
            x, dim = next(rows)
            blocks.append(_cut(move_batch_dim(x, axis.size, dim, 0), 0, out_avals))
        else:
            blocks.append([zeros(aval.update(shape=(*out.shape, *aval.shape))) for out in out_avals])
    grid = [block for row in zip(*blocks, strict=True) for block in row]
    shapes = ((*out.shape, *a.shape) for out in out_avals for a in ins)
    return [*outs, *map(reshape, grid, shapes)]


def _map_basis(
    linear: Jaxpr,
    residuals: Values,
    avals: Avals,
    nonzero: Iterable[bool] = itertools.repeat(True),
) -> tuple[Iterator[tuple[Any, int | None]], Axis]:
    """The outputs of a linear program batched over the standard basis, each with its batch dimension."""
    axis = Axis(sum(a.size for a in avals))
    basis = [x for x, nz in zip(_basis(axis.size, avals), nonzero, strict=False) if nz]
    mapped, dims = batch(linear, axis, (None,) * len(residuals) + (0,) * len(basis))
    return zip(evaluate(mapped, [*residuals, *basis]), dims, strict=True), axis


def _basis(total: int, avals: Avals) -> list[Any]:
    """The standard basis of values of these types: arrays with a leading axis over the elements of all of them."""
    if total == 1:
        return [full(a.update(shape=(a.size, *a.shape)), 1) for a in avals]
    starts = itertools.accumulate((a.size for a in avals), initial=0)
    return [_unit_vectors(total, start, a) for start, a in zip(starts, avals, strict=False)]


def _unit_vectors(total: int, start: int, aval: ShapedArray) -> Any:
    """Zeros, with a one at element i of row `start + i`."""
    rows, columns = (broadcasted_iota(np.int32, (total, aval.size), d) for d in (0, 1))
    ones = eq(rows, add(columns, literal(start, np.int32)) if start else columns)
    return reshape(convert(ones, aval.dtype, aval.weak_type), (total, *aval.shape))


def _cut(x: Any, axis: int, avals: Avals) -> list[Any]:
    """Split the axis over all elements into one part for each value."""
    return [x] if len(avals) == 1 else split(x, [a.size for a in avals], axis)
