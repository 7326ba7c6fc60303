"""Random orders, and choices from given elements."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from xlamini.core import Shape, aval_of, canonicalize_dtype, iinfo, issubdtype, literal
from xlamini.core.sizes.expression import SymbolicSize, as_size, is_symbolic_shape, max_size
from xlamini.numpy.arguments import as_axis, as_operand
from xlamini.numpy.indexing.take import take
from xlamini.numpy.searching import searchsorted
from xlamini.primitives import convert, in_dtype, index_in_dim, log, promoted_inexact, reshape, slice_in_dim, split_p
from xlamini.primitives.base.promotion import promoted_inexact_dtypes
from xlamini.primitives.random.random_keys import bits_p
from xlamini.primitives.reductions.cumulative import cumsum
from xlamini.primitives.reductions.sort import sort_key_val
from xlamini.primitives.shape.iota import iota
from xlamini.random.arguments import checked_shape, sampler
from xlamini.random.continuous import checked_mode, gumbel_noise
from xlamini.random.integers import randint
from xlamini.random.narrow import wide
from xlamini.random.uniform import halves, uniform_between
from xlamini.runtime import Array
from xlamini.transforms.while_loop.api import while_loop


def permutation(key: Any, x: Any, axis: int = 0, independent: bool = False, *, out_sharding: Any = None) -> Array:
    """The numbers 0, 1, …, x - 1 in random order, or the slices of an array `x` along `axis`.

    With `independent` each row along the axis has an order of its own. Raises TypeError for a scalar that is no
    integer, ValueError for an axis that does not exist.

    >>> xlamini.random.permutation(xlamini.random.key(0), 4)
    Array([0, 1, 3, 2], dtype=int32)
    """
    x = _count_or_array("permutation", x)
    if type(x) is SymbolicSize:
        return _permutation(key, None, x, 0, False, out_sharding=out_sharding)  # type: ignore[call-arg]
    aval = aval_of(x)
    if aval.ndim:
        axis = as_axis("permutation", axis, aval.ndim)
        return _permutation(key, x, 0, axis, bool(independent), out_sharding=out_sharding)  # type: ignore[call-arg]
    if not issubdtype(aval.dtype, np.integer):
        raise TypeError(f"permutation: x must be an integer or an array, got a scalar of dtype {aval.dtype}")
    return _permutation(key, None, max_size(as_size(x), 0), 0, False, out_sharding=out_sharding)  # type: ignore[call-arg]


@sampler("count", "axis", "independent", name="permutation")
def _permutation(key: Any, x: Any, count: int, axis: int, independent: bool) -> Any:
    if x is None:
        return _order(key, count)
    if independent or x.ndim == 1:
        return _shuffled(key, x, axis)
    return take(x, _order(key, x.shape[axis]), axis, mode="clip")


def _order(key: Any, count: int) -> Any:
    return _shuffled(key, iota(canonicalize_dtype(int), count), 0)


def _shuffled(key: Any, x: Any, axis: int) -> Any:
    """Rows in random order: sorted by random numbers, so often that equal numbers cannot favour an order noticeably."""
    size = aval_of(x).size
    if is_symbolic_shape((size,)):
        return _shuffled_in_loop(key, x, axis)
    for _ in range(_rounds(size)):
        key, x = _sorted_once(key, x, axis)
    return x


def _shuffled_in_loop(key: Any, x: Any, axis: int) -> Any:
    rounds = sum(literal(aval_of(x).size, np.int32) >= n for n in _ONCE_MORE)
    start = (convert(rounds, np.int32), key, x)
    return while_loop(lambda kept: kept[0] > 0, lambda kept: (kept[0] - 1, *_sorted_once(*kept[1:], axis)), start)[2]


def _rounds(size: int) -> int:
    return math.ceil(3 * math.log(max(1, size)) / math.log(2**32 - 1))


_ONCE_MORE = 2, 1626, 2642246
"""The sizes from which on there is one round more."""


def _sorted_once(key: Any, x: Any, axis: int) -> tuple[Any, Any]:
    key, now = halves(split_p.bind(key, shape=(2,)))
    return key, sort_key_val(bits_p.bind(now, bit_width=32, shape=x.shape), x, axis)[1]


def choice(
    key: Any,
    a: Any,
    shape: Any = (),
    replace: bool = True,
    p: Any = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Elements of `a` along `axis`, or numbers below the int `a`, drawn with probabilities `p` (by default the same for
    all).

    Without `replace` no element is drawn twice. Raises OverflowError for a number that the dtype of ints does not hold,
    ValueError where there is nothing to draw, or not enough of it,
    and for a `p` that does not have one probability for each element.

    >>> xlamini.random.choice(xlamini.random.key(0), 7, (4,)).shape
    (4,)
    """
    a = _count_or_array("choice", a)
    if p is not None:
        (p,) = promoted_inexact("choice", p)
    given, shape = () if type(a) is SymbolicSize else aval_of(a).shape, checked_shape("choice", shape)
    axis = as_axis("choice", axis, len(given)) if given else 0
    count = given[axis] if given else as_size(a)
    _check_choice(count, math.prod(shape), replace, p)
    if p is not None:
        (p,) = promoted_inexact_dtypes(p)
        p = in_dtype(p, wide(aval_of(p).dtype))
    return _choice(key, a if given else None, p, count, shape, bool(replace), axis, mode)


def _count_or_array(name: str, x: Any) -> Any:
    """The array, or the number of integers; OverflowError if the dtype of Python's ints does not hold it."""
    if type(x) is SymbolicSize:
        return x
    if not isinstance(x, int | np.integer):
        return as_operand(name, x)
    dtype = canonicalize_dtype(int)
    if x > iinfo(dtype).max:
        raise OverflowError(f"{name}: {x} numbers are more than {dtype.name} can count; turn on enable_x64")
    return int(x)


def _check_choice(count: int, draws: int, replace: bool, p: Any) -> None:
    if draws and count <= 0:
        raise ValueError(f"choice: there is nothing to draw from: a has {count} elements")
    if not replace and not draws <= count:
        raise ValueError(f"choice: {draws} draws from {count} elements need replace=True")
    if p is not None and aval_of(p).shape != (count,):
        raise ValueError(
            f"choice: p must have shape ({count},), a probability for each element, got {aval_of(p).shape}"
        )


@sampler("count", "shape", "replace", "axis", "mode", name="choice")
def _choice(
    key: Any, a: Any, p: Any, count: int, shape: Shape, replace: bool, axis: int, mode: str | None
) -> Any:
    draw = _drawn if replace else _drawn_once
    places = draw(key, count, shape, p, mode)
    return places if a is None else take(a, places, axis, mode="clip")


def _drawn(key: Any, count: int, shape: Shape, p: Any, mode: str | None) -> Any:
    """Places that may repeat."""
    if p is None:
        return randint(key, shape, 0, count)
    upto = cumsum(p)
    u = uniform_between(key, shape, aval_of(p).dtype, 0.0, 1.0)
    return searchsorted(upto, index_in_dim(upto, -1, keepdims=False) * (1 - u))


def _drawn_once(key: Any, count: int, shape: Shape, p: Any, mode: str | None) -> Any:
    """Places that do not repeat; the greatest of `log(p) + Gumbel noise` are as likely as draws one by one."""
    if p is None:
        order = _order(key, count)
    else:
        noise = gumbel_noise(key, (count,), aval_of(p).dtype, checked_mode("choice", mode))
        _, order = sort_key_val(-noise - log(p), iota(np.int32, count))
    return reshape(slice_in_dim(order, 0, math.prod(shape)), shape)
