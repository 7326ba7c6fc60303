"""Full derivatives: jacfwd, jacrev, jacobian and hessian, by mapping jvp or vjp over a basis."""
from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core.avals import ShapedArray
from xlamini.core.dtypes import float0
from xlamini.core.edges import edge
from xlamini.core.pytree import flatten, keystr, tree_flatten_with_path, unflatten
from xlamini.core.tangents import is_differentiable
from xlamini.core.tracer import aval_of
from xlamini.primitives.shape import reshape
from xlamini.primitives.slice import slice_in_dim
from xlamini.primitives.tangent_ops import zeros
from xlamini.transforms.arguments import check_callable
from xlamini.transforms.differentiated import Argnums, DiffArgs, split_aux
from xlamini.transforms.jvp import linearize
from xlamini.transforms.vjp import vjp
from xlamini.transforms.vmap import vmap


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

    @edge
    @functools.wraps(fun)
    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        diff, of_chosen, chosen = _chosen(fun, argnums, args, kwargs, "jacfwd", has_aux)
        _check_inputs(diff, "jacfwd", holomorphic)
        out, push, *aux = linearize(of_chosen, *chosen, has_aux=has_aux)
        _check_outputs(diff, "jacfwd", out, holomorphic)
        columns = vmap(push, out_axes=-1)(*_basis(chosen))
        return _with_aux(_jacobian(out, chosen, columns, -1, diff.single), aux)

    return jacobian_of


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

    @edge
    @functools.wraps(fun)
    def jacobian_of(*args: Any, **kwargs: Any) -> Any:
        diff, of_chosen, chosen = _chosen(fun, argnums, args, kwargs, "jacrev", has_aux)
        _check_inputs(diff, "jacrev", holomorphic, allow_int)
        out, pullback, *aux = vjp(of_chosen, *chosen, has_aux=has_aux)
        _check_outputs(diff, "jacrev", out, holomorphic)
        rows = vmap(pullback)(_basis(out))
        return _with_aux(_jacobian(out, chosen, rows, 0, diff.single), aux)

    return jacobian_of


jacobian = jacrev


def hessian(
    fun: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, holomorphic: bool = False
) -> Callable[..., Any]:
    """The matrix of second derivatives of `fun`: `jacfwd` of `jacrev`.

    >>> xlamini.hessian(lambda x: x @ x)(xlamini.numpy.ones(2))
    Array([[2., 0.],
           [0., 2.]], dtype=float32)
    """
    return jacfwd(jacrev(fun, argnums, has_aux, holomorphic), argnums, has_aux, holomorphic)


def _chosen(
    fun: Callable[..., Any], argnums: Argnums, args: Sequence[Any], kwargs: dict[str, Any], what: str, has_aux: bool
) -> tuple[DiffArgs, Callable[..., Any], Any]:
    """The chosen arguments, and the function of them alone."""
    diff = DiffArgs(fun, argnums, args, kwargs, what)

    @functools.wraps(fun)
    def of_chosen(*chosen: Any) -> Any:
        out = diff.of_chosen(*chosen)
        return split_aux(out, what, diff.fun_name) if has_aux else out

    return diff, of_chosen, unflatten(diff.tree, diff.leaves)


def _check_inputs(diff: DiffArgs, what: str, holomorphic: bool, allow_int: bool = False) -> None:
    """TypeError for an argument that has no such Jacobian; jacrev takes complex ones, since it goes by the outputs."""
    for i, aval in enumerate(diff.avals):
        is_complex, differentiable = aval.dtype.kind == "c", is_differentiable(aval)
        wanted = "complex" if holomorphic else "real floating-point" if what == "jacfwd" else "floating-point"
        fits = is_complex if holomorphic else differentiable and not (is_complex and what == "jacfwd")
        if not fits and (differentiable or not allow_int):
            raise TypeError(
                f"{what} needs {wanted} arguments, but {diff.names[i]!r} of {diff.fun_name} is "
                f"{aval.str_short(short_dtypes=False)}; convert it with .astype"
                + (", or pass holomorphic=True" if is_complex else "")
                + (", or pass allow_int=True" if what == "jacrev" and not (differentiable or holomorphic) else "")
            )


def _check_outputs(diff: DiffArgs, what: str, out: Any, holomorphic: bool) -> None:
    """TypeError for an output that has no such Jacobian; jacfwd takes any, since it goes by the arguments."""
    for path, x in tree_flatten_with_path(out)[0]:
        aval = aval_of(x)
        fits = aval.dtype.kind == "c" if holomorphic else what == "jacfwd" or _is_real(aval)
        if not fits:
            raise TypeError(
                f"{what}{' with holomorphic=True' if holomorphic else ''} needs "
                f"{'complex' if holomorphic else 'real floating-point'} outputs, but output{keystr(path)} of "
                f"{diff.fun_name} is {aval.str_short(short_dtypes=False)}"
                + ("; take its real part, or pass holomorphic=True" if aval.dtype.kind == "c" else "")
            )


def _is_real(aval: Any) -> bool:
    return is_differentiable(aval) and aval.dtype.kind != "c"


def _basis(tree: Any) -> Any:
    """The standard basis of the space of a tree's values: leaves with a leading axis over all its elements."""
    leaves, structure = flatten(tree)
    avals = [aval_of(x) for x in leaves]
    total, start, rows = sum(a.size for a in avals), 0, []
    for aval in avals:
        rows.append(np.eye(total, aval.size, -start, dtype=aval.dtype).reshape(total, *aval.shape))
        start += aval.size
    return unflatten(structure, rows)


def _jacobian(out: Any, chosen: Any, stacked: Any, axis: int, single: bool) -> Any:
    """The tree of blocks, outputs outside, arguments inside; `stacked` has an axis over all elements of one side."""
    (outs, out_tree), (ins, in_tree) = flatten(out), flatten(chosen)
    out_shapes, in_shapes = ([aval_of(x).shape for x in xs] for xs in (outs, ins))
    split_shapes = in_shapes if axis else out_shapes
    integers = outs if axis else ins
    dense = [_numbers(x, like) for x, like in zip(flatten(stacked)[0], integers, strict=True)]
    blocks = [_split(x, axis, split_shapes) for x in dense]
    grid = blocks if axis else list(zip(*blocks, strict=True))
    rows = []
    for row, out_shape in zip(grid, out_shapes, strict=True):
        cells = [reshape(c, (*out_shape, *in_shape)) for c, in_shape in zip(row, in_shapes, strict=True)]
        of_arguments = unflatten(in_tree, cells)
        rows.append(of_arguments[0] if single else of_arguments)
    return unflatten(out_tree, rows)


def _numbers(x: Any, like: Any) -> Any:
    """In place of float0, zeros of the integer dtype that has no derivative."""
    return zeros(ShapedArray(x.shape, aval_of(like).dtype)) if x.dtype == float0 else x


def _split(x: Any, axis: int, shapes: Sequence[tuple[int, ...]]) -> list[Any]:
    """Cut the axis over all elements into the parts of the leaves."""
    sizes = [math.prod(shape) for shape in shapes]
    axis %= aval_of(x).ndim
    ends = list(itertools.accumulate(sizes))
    return [slice_in_dim(x, end - size, end, axis=axis) for end, size in zip(ends, sizes, strict=True)]


def _with_aux(result: Any, aux: Sequence[Any]) -> Any:
    return (result, aux[0]) if aux else result
