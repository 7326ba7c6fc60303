"""The public function `associative_scan`: all prefix results of an associative operation, in logarithmic depth."""
from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, overload

from xlamini.core import Avals, Values, aval_of, disable_jit, first_difference, flatten_from_user, unflatten
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.primitives import expand_dims, rev
from xlamini.primitives.reductions.prefix_scan import Combine, prefix_scan
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.primitives.shape.shape import moveaxis, squeeze
from xlamini.primitives.shape.slice import slice_in_dim
from xlamini.staging import LeafNames, checked_avals, name_of, rebuilt
from xlamini.staging.run.eager.program_cache import as_one_program
from xlamini.transforms.control_flow.carries import check_function
from xlamini.transforms.scan.api import scan

T = TypeVar("T")


@overload
def associative_scan(fn: Callable[[T, T], T], elems: T, reverse: bool = False, axis: int = 0) -> T: ...
@overload
def associative_scan(fn: Callable[[Any, Any], T], elems: Any, reverse: bool = False, axis: int = 0) -> T: ...
def associative_scan(fn: Callable[[Any, Any], Any], elems: Any, reverse: bool = False, axis: int = 0) -> Any:
    """The prefix scan of `elems` along `axis` by `fn`: result i combines elements 0 to i (`reverse`: the last to i).

    `fn(a, b)` must be associative. It takes two containers like `elems`, of arrays of many elements each along `axis`,
    and combines them elementwise; it returns the same structure, shapes and dtypes (else TypeError). The arrays in
    `elems` are of one length along `axis`, which may be negative (else ValueError). There are about `2 * log2(n)` calls
    of `fn`, one after the other, which combine about `2 * n` elements in all; for a symbolic length n of one element.

    >>> associative_scan(xlamini.numpy.multiply, xlamini.numpy.arange(1, 5))
    Array([ 1,  2,  6, 24], dtype=int32)
    """
    check_function("associative_scan", "fn", fn)
    leaves, tree = flatten_from_user(elems)
    axis = _check_axis(leaves, tree, axis)

    def run(*elements: Any) -> list[Any]:
        inputs = [rev(x, (axis,)) for x in elements] if reverse else list(elements)
        steps = _one_by_one if type(aval_of(inputs[0]).shape[axis]) is SymbolicSize else prefix_scan
        outs = steps(_combine_leaves(fn, tree), inputs, axis)
        return [rev(x, (axis,)) for x in outs] if reverse else list(outs)

    outs = run(*leaves) if disable_jit.value else as_one_program(run, leaves, "associative_scan")
    return rebuilt(tree, outs)


def _one_by_one(combine: Combine, elements: Values, axis: int) -> list[Any]:
    """What `prefix_scan` gives, in a loop over the elements: their number is not known."""
    first = [slice_in_dim(x, 0, 1, axis=axis) for x in elements]
    later = [moveaxis(slice_in_dim(x, 1, None, axis=axis), axis, 0) for x in elements]

    def step(before: Values, rows: Values) -> tuple[list[Any], list[Any]]:
        after = list(combine(before, [expand_dims(row, (axis,)) for row in rows]))
        return after, [squeeze(x, (axis,)) for x in after]

    _, rows = scan(step, first, later)
    return [concatenate([x, moveaxis(y, 0, axis)], axis) for x, y in zip(first, rows, strict=True)]


def _check_axis(leaves: Values, tree: Any, axis: int) -> int:
    """The nonnegative axis; ValueError unless all leaves have one length along it."""
    names = LeafNames("elems", tree)
    avals = checked_avals(leaves, names, "associative_scan")
    if not avals:
        raise ValueError("associative_scan: elems has no arrays; give at least one")
    ndim = avals[0].ndim
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        fix = f"it takes {-ndim} to {ndim - 1}" if ndim else "give an array of elements"
        raise ValueError(f"associative_scan: axis {axis!r} does not fit {names[0]}, {avals[0].str_long()}; {fix}")
    axis %= ndim
    for i, aval in enumerate(avals):
        if aval.shape[axis : axis + 1] != avals[0].shape[axis : axis + 1]:
            raise ValueError(
                f"associative_scan: the arrays in elems must be of one length along axis {axis}, but {names[0]} is "
                f"{avals[0].str_long()} and {names[i]} is {aval.str_long()}; cut or repeat one of them"
            )
    return axis


def _combine_leaves(fn: Callable[[Any, Any], Any], tree: Any) -> Callable[[Sequence[Any], Sequence[Any]], list[Any]]:
    """`fn` as a function of flat leaves, with a check of what it returns: a plain tuple may stand for a named one."""

    def combine(left: Values, right: Values) -> list[Any]:
        outs, out_tree = flatten_from_user(fn(unflatten(tree, left), unflatten(tree, right)))
        if len(outs) != len(left):
            where = first_difference(tree, out_tree, ("elems", f"the output of {name_of(fn)}"))
            raise TypeError(f"associative_scan: fn must return the structure that it takes, but {where}")
        _check_types(fn, tree, [aval_of(x) for x in left], [aval_of(x) for x in outs])
        return outs

    return combine


def _check_types(
    fn: Callable[..., Any], tree: Any, taken: Avals, returned: Avals
) -> None:
    names = LeafNames("", tree)
    lines = [
        f"  a{names[i]} is {a.str_long()}, output{names[i]} is {b.str_long()}"
        for i, (a, b) in enumerate(zip(taken, returned, strict=True))
        if (a.shape, a.dtype) != (b.shape, b.dtype)
    ]
    if lines:
        listed = "\n".join(lines)
        raise TypeError(
            f"associative_scan: {name_of(fn)} must return the types that it takes, but\n{listed}\n"
            "It takes many elements at once and combines them elementwise; wrap it in vmap to write it for one element."
        )
