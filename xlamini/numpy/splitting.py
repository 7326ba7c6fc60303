"""An array parted into several."""
from __future__ import annotations

import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import ShapeError
from xlamini.core.sizes.expression import SymbolicSize, as_size, max_size, min_size
from xlamini.numpy.arguments import as_axis, as_operand, as_whole
from xlamini.primitives import squeeze
from xlamini.primitives.shape.concatenate import split as _split
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike

Places = int | Sequence[int] | ArrayLike


def split(ary: ArrayLike, indices_or_sections: Places, axis: int = 0) -> list[Array]:
    """`ary` parted along an axis: into so many equal parts, or before each of the indices.

    ValueError if the axis does not divide into equal parts; see array_split.

    >>> split(xlamini.numpy.arange(4), [1, 3])
    [Array([0], dtype=int32), Array([1, 2], dtype=int32), Array([3], dtype=int32)]
    """
    return _split_array("split", ary, indices_or_sections, axis, even=True)


def array_split(ary: ArrayLike, indices_or_sections: Places, axis: int = 0) -> list[Array]:
    """Like `split`, but the first of the parts may be longer by one, where there is a rest.

    >>> jnp.array_split(jnp.arange(5), 2)
    [Array([0, 1, 2], dtype=int32), Array([3, 4], dtype=int32)]
    """
    return _split_array("array_split", ary, indices_or_sections, axis, even=False)


def hsplit(ary: ArrayLike, indices_or_sections: Places) -> list[Array]:
    """`ary` parted along its second axis, or its only one.

    >>> jnp.hsplit(jnp.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    return _split_array("hsplit", ary, indices_or_sections, 0 if np.ndim(ary) == 1 else 1, even=True)


def vsplit(ary: ArrayLike, indices_or_sections: Places) -> list[Array]:
    """`ary` parted along its first axis.

    >>> [part.shape for part in jnp.vsplit(jnp.ones((4, 2)), 2)]
    [(2, 2), (2, 2)]
    """
    return _split_array("vsplit", ary, indices_or_sections, 0, even=True)


def dsplit(ary: ArrayLike, indices_or_sections: Places) -> list[Array]:
    """`ary` parted along its third axis.

    >>> [part.shape for part in jnp.dsplit(jnp.ones((1, 2, 4)), 2)]
    [(1, 2, 2), (1, 2, 2)]
    """
    return _split_array("dsplit", ary, indices_or_sections, 2, even=True)


@composite(static=("axis",))
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices of `x` along an axis, which they lack.

    >>> unstack(xlamini.numpy.ones((2, 3)))[0].shape
    (3,)
    """
    array = as_operand("unstack", x)
    if not array.ndim:
        raise ValueError("unstack: at least one dimension is needed, got a scalar")
    along = as_axis("unstack", axis, array.ndim)
    if not array.shape[along]:
        return ()
    return tuple(squeeze(part, (along,)) for part in _split(array, (1,) * array.shape[along], along))


def _split_array(name: str, array: Any, places: Any, axis: int, *, even: bool) -> list[Array]:
    x = as_operand(name, array)
    along = as_axis(name, axis, x.ndim)
    length = x.shape[along]
    if isinstance(places, Sequence) or (type(places) is not SymbolicSize and np.ndim(places)):
        return list(_split(x, _between(name, places, length), along))
    sections = as_whole(name, "indices_or_sections", places)
    return list(_split(x, _equal(name, sections, length, even), along))


def _between(name: str, places: Any, length: int) -> list[int]:
    bounds = [min_size(max_size(i + length if i < 0 else i, 0), length) for i in map(as_size, places)]
    sizes = [stop - start for start, stop in itertools.pairwise([0, *bounds, length])]
    if not all(n >= 0 for n in sizes):
        raise ValueError(f"{name}: the indices {tuple(places)} must ascend")
    return sizes


def _equal(name: str, sections: int, length: int, even: bool) -> list[int]:
    if sections < 1:
        raise ValueError(f"{name}: the number of parts must be 1 or more, got {sections}")
    size, rest = divmod(length, operator.index(sections))
    if even and rest != 0:
        is_known = type(rest) is not SymbolicSize
        hint = "array_split allows a rest" if is_known else f"the constraint '{rest} == 0' says that they do"
        raise ShapeError(f"{name}: {length} elements do not make {sections} equal parts; {hint}")
    rest = operator.index(rest)
    return [size + 1] * rest + [size] * (sections - rest)
