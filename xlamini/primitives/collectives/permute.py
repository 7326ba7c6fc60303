"""Sending from position to position: ppermute, pshuffle, pbroadcast."""
from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, Final

import numpy as np

from xlamini.core import ShapedArray, Values, aval_of, literal, tree_map
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.primitives.base.tangent_ops import zeros
from xlamini.primitives.collectives.axes import AxisName, axis_index, axis_index_p, axis_size, collective_axes
from xlamini.primitives.collectives.base import LinearCollective, Stacked, rows
from xlamini.primitives.collectives.devices import groups_along, permuted
from xlamini.primitives.collectives.gathering import all_gather
from xlamini.primitives.collectives.reductions import psum_p
from xlamini.primitives.elementwise.comparison import eq
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.indexing.dynamic_slice import dynamic_index_in_dim
from xlamini.primitives.shape.shape import broadcast_in_dim
from xlamini.primitives.shape.slice import index_in_dim

Pairs = tuple[tuple[int, int], ...]


def ppermute(x: Any, axis_name: AxisName, perm: Any) -> Any:
    """Send each leaf of `x` along the named axis: `perm` is a list of pairs (source position, destination).

    A position that nobody sends to gets zeros. Along several names positions count in row-major order. Raises
    NameError if there is no such axis, ValueError for a source or destination that is named twice or is none.

    >>> xlamini.vmap(lambda x: ppermute(x, "i", [(0, 1), (1, 2)]), axis_name="i")(xlamini.numpy.arange(1, 4))
    Array([0, 1, 2], dtype=int32)
    """
    names = collective_axes("ppermute", axis_name)
    pairs = _checked_pairs(perm, axis_size(names))
    return tree_map(lambda leaf: _permuted(leaf, names, pairs), x)


def pshuffle(x: Any, axis_name: AxisName, perm: Any) -> Any:
    """Permute each leaf of `x` among the positions: position i gets that of position `perm[i]`.

    Raises NameError if there is no such axis, ValueError if `perm` is no permutation of its positions.

    >>> xlamini.vmap(lambda x: pshuffle(x, "i", [2, 0, 1]), axis_name="i")(xlamini.numpy.arange(3))
    Array([2, 0, 1], dtype=int32)
    """
    names, sources = collective_axes("pshuffle", axis_name), [operator.index(i) for i in perm]
    size = axis_size(names)
    if sorted(sources) != list(range(size)):
        raise ValueError(f"pshuffle: perm must name each position, 0 to {size - 1}, once, but is {sources}")
    pairs = tuple((source, i) for i, source in enumerate(sources))
    return tree_map(lambda leaf: _permuted(leaf, names, pairs), x)


def pbroadcast(x: Any, axis_name: AxisName, source: int) -> Any:
    """Broadcast each leaf of `x` from the position `source` to all positions along the named axis.

    Raises NameError if there is no such axis, ValueError if it has no such position.

    >>> xlamini.vmap(lambda x: pbroadcast(x, "i", 1), axis_name="i")(xlamini.numpy.arange(3))
    Array([1, 1, 1], dtype=int32)
    """
    names, position = collective_axes("pbroadcast", axis_name), operator.index(source)
    size = axis_size(names)
    if not 0 <= position < size:
        axes = ", ".join(map(repr, names))
        raise ValueError(f"pbroadcast: source {position} is no position along {axes}; it takes 0 to {size - 1}")
    if len(names) == 1:
        return tree_map(lambda leaf: pbroadcast_p.bind(leaf, axis_name=names[0], source=position), x)
    return tree_map(lambda leaf: index_in_dim(all_gather(leaf, names), position, keepdims=False), x)


def _checked_pairs(perm: Any, size: int) -> Pairs:
    if not isinstance(perm, Iterable):
        raise TypeError(f"ppermute: perm must be a list of pairs (source, destination), got {perm!r}")
    pairs = tuple(_pair(pair) for pair in perm)
    for which, positions in zip(("source", "destination"), zip(*pairs, strict=True), strict=False):
        for i in positions:
            if not 0 <= i < size:
                raise ValueError(
                    f"ppermute: {which} {i} in perm is no position of an axis of size {size}; it takes 0 to {size - 1}"
                )
            if positions.count(i) > 1:
                fix = "; all_gather or pbroadcast sends to several" if which == "source" else ""
                raise ValueError(f"ppermute: {which} {i} is twice in perm {list(pairs)}{fix}")
    return pairs


def _pair(pair: Any) -> tuple[int, int]:
    try:
        source, destination = map(operator.index, pair)
    except (TypeError, ValueError):
        raise TypeError(f"ppermute: perm must be pairs (source, destination) of ints, but holds {pair!r}") from None
    return source, destination


def _permuted(x: Any, names: tuple[Any, ...], pairs: Pairs) -> Any:
    if len(names) == 1:
        return ppermute_p.bind(x, axis_name=names, perm=pairs)
    sources, receives = _table(pairs, axis_size(names))
    here = axis_index(names)
    source = dynamic_index_in_dim(sources, here, keepdims=False)
    sent = dynamic_index_in_dim(all_gather(x, names), source, keepdims=False)
    return where(dynamic_index_in_dim(receives, here, keepdims=False), sent, zeros(aval_of(sent)))


def _table(pairs: Pairs, size: int) -> tuple[np.ndarray, np.ndarray]:
    """For each destination the index of its source, and a mask of the positions that have one."""
    sources, receives = np.zeros(size, np.int32), np.zeros(size, bool)
    for source, destination in pairs:
        sources[destination], receives[destination] = source, True
    return sources, receives


class Permute(LinearCollective):
    """Send the value of `source` to `destination` for each pair in `perm`; positions that receive nothing get zeros."""

    name = "ppermute"
    checks = NO_NEW_NAN

    def shape_rule(self, x: ShapedArray, **params: Any) -> ShapedArray:
        return x

    def transpose(self, ct: Any, x: Any, *, perm: Pairs, **params: Any) -> Values:
        return [self.bind(ct, perm=tuple((d, s) for s, d in perm), **params)]

    def stacked(self, x: Any, size: int, *, perm: Pairs, **params: Any) -> Stacked:
        sources, receives = _table(perm, size)
        sent = rows(x, sources)
        if receives.all():
            return sent, 0
        aval = aval_of(sent)
        return where(broadcast_in_dim(receives, aval.shape, (0,)), sent, zeros(aval)), 0

    def for_one_position(self, x: Any, *, perm: Pairs, **params: Any) -> Any:
        return x if perm else zeros(aval_of(x))

    def lower_over_mesh(self, ctx: Any, x: Any, *, axis_name: Any, perm: Pairs) -> Any:
        return permuted(ctx, x, [(row[s], row[d]) for row in groups_along(ctx, axis_name) for s, d in perm])


class Broadcast(LinearCollective):
    """Broadcast the value of the position `source` to all positions."""

    name = "pbroadcast"
    checks = NO_NEW_NAN

    def shape_rule(self, x: ShapedArray, **params: Any) -> ShapedArray:
        return x

    def transpose(self, ct: Any, x: Any, *, axis_name: Any, source: int) -> Values:
        """The source's cotangent is the sum of all, and nobody else's value is used."""
        total = psum_p.bind(ct, axes=(axis_name,), axis_index_groups=None)
        here = axis_index_p.bind(axis_name=axis_name)
        return [where(eq(here, literal(source, np.dtype("int32"))), total, zeros(aval_of(total)))]

    def stacked(self, x: Any, size: int, *, source: int, **params: Any) -> Stacked:
        return index_in_dim(x, source, keepdims=False), None

    def lower_over_mesh(self, ctx: Any, x: Any, *, axis_name: Any, source: int) -> Any:
        """A psum with zeros on all positions but the source, as not every platform can broadcast."""

        def summed(x: Any) -> Any:
            aval, here = aval_of(x), axis_index_p.bind(axis_name=axis_name)
            number = convert(x, np.dtype("int32")) if aval.dtype == bool else x
            only = where(eq(here, literal(source, np.dtype("int32"))), number, zeros(aval_of(number)))
            return convert(psum_p.bind(only, axes=(axis_name,), axis_index_groups=None), aval.dtype)

        return ctx.inline(summed, x)


ppermute_p: Final = Permute()
pbroadcast_p: Final = Broadcast()
