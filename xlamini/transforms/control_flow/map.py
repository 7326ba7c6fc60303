"""The public function `map`: a function applied to one slice, or with vmap to a block of slices, at a time."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

from xlamini.core import Values, aval_of, flatten_from_user, tree_map, unflatten
from xlamini.core.sizes.expression import as_size
from xlamini.primitives import reshape, slice_in_dim
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.staging import LeafNames, name_of
from xlamini.transforms.control_flow.carries import check_function
from xlamini.transforms.scan.api import LoopCall, looped
from xlamini.transforms.scan.slices import slices_of
from xlamini.transforms.vmap import vmap

X = TypeVar("X")
Y = TypeVar("Y")


@overload
def map(f: Callable[[X], Y], xs: X, *, batch_size: int | None = None) -> Y: ...
@overload
def map(f: Callable[[Any], Y], xs: Any, *, batch_size: int | None = None) -> Y: ...
def map(f: Callable[[Any], Any], xs: Any, *, batch_size: int | None = None) -> Any:
    """`f(x)` for every slice x of `xs` along dimension 0, one after the other; the results stacked along dimension 0.

    `xs` is an array or a container of arrays, all of one length along dimension 0 (else ValueError). `batch_size` is
    the number of slices that `vmap` computes at a time: larger batches are faster, but take more memory. The last batch
    may be smaller.

    >>> map(lambda x: x * x, xlamini.numpy.arange(4))
    Array([0, 1, 4, 9], dtype=int32)
    """
    check_function("map", "f", f)
    if batch_size is None:
        return _one_by_one(f, xs)
    size = _checked_size(batch_size)
    leaves, tree = flatten_from_user(xs)
    _, length = slices_of("map", leaves, LeafNames("xs", tree))
    return _in_blocks(f, leaves, tree, length // size, size)


def _one_by_one(f: Callable[[Any], Any], xs: Any) -> Any:
    def body(carry: Any, x: Any) -> Any:
        return carry, f(x)

    body.__name__ = name_of(f)
    return looped(LoopCall("map", body), (), xs)[1]


def _in_blocks(f: Callable[[Any], Any], leaves: Values, tree: Any, blocks: int, size: int) -> Any:
    """The results of all full blocks, followed by the results of a last, smaller block."""
    whole = blocks * size
    mapped = vmap(f)
    if blocks == 0:
        return mapped(unflatten(tree, leaves))
    rows = [reshape(slice_in_dim(x, 0, whole), (blocks, size, *aval_of(x).shape[1:])) for x in leaves]
    rest = [slice_in_dim(x, whole, None) for x in leaves]
    outs = _one_by_one(mapped, unflatten(tree, rows))
    if aval_of(rest[0]).shape[0] == 0:
        return tree_map(_merge_blocks, outs)
    return tree_map(lambda x, y: concatenate([_merge_blocks(x), y], 0), outs, mapped(unflatten(tree, rest)))


def _merge_blocks(x: Any) -> Any:
    blocks, size, *shape = aval_of(x).shape
    return reshape(x, (blocks * size, *shape))


def _checked_size(given: Any) -> int:
    try:
        size = as_size(given)
    except TypeError:
        raise TypeError(
            f"map: batch_size must be an int or None, got {given!r} of type {type(given).__name__}; it decides how the "
            "loop is compiled"
        ) from None
    if size < 1:
        raise ValueError(f"map: batch_size must be 1 or more, got {size}; leave it out for one slice at a time")
    return size
