"""Objects that are indexed to make arrays: mgrid and ogrid, r_ and c_, s_; and ix_, which makes an open mesh.

In a slice an imaginary step is a number of points, the stop among them: `r_[0:1:5j]` is `linspace(0, 1, 5)`.
"""
from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np

from xlamini.core import aval_of, issubdtype, result_type
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.construction import asarray
from xlamini.numpy.joining import concatenate, stack
from xlamini.numpy.ranges import arange, linspace, meshgrid
from xlamini.numpy.shapes import moveaxis
from xlamini.primitives import convert, expand_dims, reshape
from xlamini.primitives.base.promotion import check_members
from xlamini.runtime import Array
from xlamini.typing import ArrayLike


def _points(span: slice) -> Any:
    """The numbers that a slice names."""
    start, step = (0 if span.start is None else span.start), (1 if span.step is None else span.step)
    if isinstance(step, complex):
        return linspace(start, span.stop, int(abs(step)))
    return arange(start, span.stop, step)


def _grid(name: str, key: Any, sparse: bool) -> Any:
    spans = key if isinstance(key, tuple) else (key,)
    for span in spans:
        if not isinstance(span, slice):
            raise TypeError(f"{name} is indexed with slices, got {span!r}; write {name}[0:{span!r}]")
    if not isinstance(key, tuple):
        return _points(key)
    points = [_points(span) for span in spans]
    dtype = result_type(*points) if points else None
    return meshgrid(*(convert(p, dtype, aval_of(p).weak_type) for p in points), indexing="ij", sparse=sparse)


class MGrid:
    """`mgrid[0:2, 0:3]`: the coordinates of every point of a grid, stacked, one array for each axis.

    >>> mgrid[0:2, 0:2]
    Array([[[0, 0],
            [1, 1]],
    <BLANKLINE>
           [[0, 1],
            [0, 1]]], dtype=int32)
    """

    @api_boundary
    def __getitem__(self, key: Any) -> Array:
        made = _grid("mgrid", key, False)
        if isinstance(made, list):
            return stack(made) if made else asarray(np.zeros(0, int))
        return made


class OGrid:
    """`ogrid[0:2, 0:3]`: the coordinates of a grid, one array for each axis, each as thin as it can be.

    >>> [x.shape for x in ogrid[0:2, 0:3]]
    [(2, 1), (1, 3)]
    """

    @api_boundary
    def __getitem__(self, key: Any) -> Array | list[Array]:
        return _grid("ogrid", key, True)


class IndexExpression:
    """`s_[1:3, ::2]`: the expression in brackets, to be used as an index later.

    >>> s_[1:3]
    slice(1, 3, None)
    """

    def __init__(self, as_tuple: bool = False):
        self._as_tuple = as_tuple

    def __getitem__(self, key: Any) -> Any:
        return (key,) if self._as_tuple and not isinstance(key, tuple) else key


class Directive(NamedTuple):
    """The layout of a join: along `axis`, with at least `ndmin` axes; those of a vector begin at `place`.

    `matrix` is "r" or "c" for a matrix of one row or one column.
    """

    axis: int = 0
    ndmin: int = 1
    place: int = -1
    matrix: str = ""


class Joiner:
    """`r_[1:4, 0, [5, 6]]`: arrays, numbers and slices joined; a leading string such as "0,2" sets the layout.

    The text has up to three numbers: the axis to join along, the least number of axes, and where the axes of an array
    with fewer begin. "r" and "c" make a matrix.

    >>> r_[1:4, 0, 9]
    Array([1, 2, 3, 0, 9], dtype=int32)
    """

    def __init__(self, name: str, default: Directive):
        self._name, self._default = name, default

    @api_boundary
    def __getitem__(self, key: Any) -> Array:
        parts = key if isinstance(key, tuple) else (key,)
        how = self._default
        if parts and isinstance(parts[0], str):
            how, parts = self._directive(parts[0]), parts[1:]
        check_members(parts)
        arrays = [self._raised(self._made(x), how) for x in parts]
        joined = concatenate(arrays, axis=how.axis)
        if how.matrix and joined.ndim == 1:
            joined = expand_dims(joined, (0 if how.matrix == "r" else 1,))
        return joined

    def _directive(self, text: str) -> Directive:
        if text in ("r", "c"):
            return Directive(matrix=text)
        try:
            numbers: Any = [int(part) for part in text.split(",")]
            return Directive(*numbers)
        except (TypeError, ValueError):
            raise ValueError(
                f"{self._name}: {text!r} says nothing; it takes 'r', 'c', or up to three integers as in '0,2,-1'"
            ) from None

    def _made(self, x: Any) -> Any:
        return _points(x) if isinstance(x, slice) else asarray(x)

    def _raised(self, x: Any, how: Directive) -> Any:
        """An array with at least `ndmin` axes: its own begin at `place`, the others have length 1."""
        rank = aval_of(x).ndim
        new = how.ndmin - rank
        if new <= 0:
            return x
        first = how.place + (new + 1 if how.place < 0 else 0)
        x = reshape(x, (*aval_of(x).shape, *(1,) * new))
        return moveaxis(x, tuple(range(rank)), tuple(range(first, first + rank))) if rank else x


mgrid: Final = MGrid()
ogrid: Final = OGrid()
s_: Final = IndexExpression()
index_exp: Final = IndexExpression(as_tuple=True)
r_: Final = Joiner("r_", Directive())
c_: Final = Joiner("c_", Directive(axis=-1, ndmin=2, place=0))


def ix_(*args: ArrayLike) -> tuple[Array, ...]:
    """One-dimensional arrays as an open mesh: `a[ix_(rows, columns)]` has those rows and columns of `a`.

    ValueError for another rank; NotImplementedError for booleans, whose count is unknown while tracing.

    >>> jnp.arange(9).reshape(3, 3)[ix_(jnp.array([0, 2]), jnp.array([1]))]
    Array([[1],
           [7]], dtype=int32)
    """
    arrays = [as_operand("ix_", x) for x in args]
    for position, x in enumerate(arrays):
        aval = aval_of(x)
        if aval.ndim != 1:
            raise ValueError(f"ix_: argument {position} must be one-dimensional, got shape {aval.shape}; use ravel")
        if issubdtype(aval.dtype, np.bool_):
            raise NotImplementedError(f"ix_: argument {position} is boolean; give the places with jnp.nonzero")
    empty = [convert(x, np.dtype("int32")) if not aval_of(x).size else x for x in arrays]
    return tuple(
        expand_dims(x, [d for d in range(len(arrays)) if d != i]) for i, x in enumerate(empty)
    )
