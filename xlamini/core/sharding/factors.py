"""Factors: which dimensions of an equation's operands and results belong together, so that they are split alike.

Each primitive says its own; here is how most of them do.
"""
from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

from xlamini.core.program.avals import Avals, ShapedArray

Labels = Sequence[Hashable]


class Factors(NamedTuple):
    """A label for each dimension of each operand, and of each result: dimensions with one label are split alike.

    A dimension of an operand that is labelled None must be whole; one of a result is whole. A label that only operands
    have stands for a dimension that is computed away; where it is `contracted`, and split in every operand that has it,
    the result could be split in several ways, so that the user must say which.

    >>> from xlamini import extend
    >>> x = extend.ShapedArray((8, 4), "float32")
    >>> extend.sharding_rule[lax.transpose_p]([x], [extend.ShapedArray((4, 8), "float32")], permutation=(1, 0))
    Factors(operands=[range(0, 2)], results=[(1, 0)], contracted=())
    """

    operands: Sequence[Labels]
    results: Sequence[Labels]
    contracted: Labels = ()


def dims(aval: ShapedArray) -> Labels:
    """A label for each dimension: its number."""
    return range(aval.ndim)


def apart(avals: Avals) -> list[Labels]:
    """Labels of arrays that have nothing to do with each other."""
    return [[(i, d) for d in dims(aval)] for i, aval in enumerate(avals)]


def where_split(x: ShapedArray) -> Labels:
    """Labels that hold another array to how `x` is split: it may be split where `x` is, and there alike."""
    entries = ((),) * x.ndim if x.explicit_sharding is None else x.explicit_sharding.entries
    return [d if names else None for d, names in enumerate(entries)]


def alike(avals: Avals, outs: Avals, whole: Sequence[int] = ()) -> Factors:
    """The factors of an operation that leaves dimensions where they are; those in `whole` must not be split.

    `avals` are the types of the operands, `outs` those of the results, as a sharding rule is given them.

    >>> x = ShapedArray((8, 4), "float32")
    >>> alike([x], [x], whole=[1])
    Factors(operands=[[0, None]], results=[[0, None]], contracted=())
    """
    labels = [[None if d in whole else d for d in dims(a)] for a in (*avals, *outs)]
    return Factors(labels[: len(avals)], labels[len(avals) :])


def in_front(avals: Avals, outs: Avals, count: int) -> Factors:
    """The factors of an operation on stacks: the first `count` dimensions stay, all others must be whole.

    `avals` are the types of the operands, `outs` those of the results.

    >>> x, norm = ShapedArray((8, 4, 4), "float32"), ShapedArray((8,), "float32")
    >>> in_front([x], [norm], 1)
    Factors(operands=[[0, None, None]], results=[[0]], contracted=())
    """
    return alike(avals, outs, range(count, max(a.ndim for a in (*avals, *outs))))


def broadcasting(avals: Avals, out: ShapedArray) -> Factors:
    """The factors of an operation on elements: dimensions are paired from the last on, those of size 1 stretch.

    `avals` are the types of the operands, of no more dimensions than the result, whose type is `out`.

    >>> x, y = ShapedArray((8, 4), "float32"), ShapedArray((1, 4), "float32")
    >>> broadcasting([x, y], x)
    Factors(operands=[[0, 1], [(1, 0), 1]], results=[range(0, 2)], contracted=())
    """
    operands = []
    for i, aval in enumerate(avals):
        places = range(out.ndim - aval.ndim, out.ndim)
        operands.append([d if n == out.shape[d] else (i, d) for d, n in zip(places, aval.shape, strict=True)])
    return Factors(operands, [dims(out)])


def reducing(x: ShapedArray, axes: Sequence[int], results: int = 1) -> Factors:
    """The factors of an operation that computes `axes` away and leaves the other dimensions.

    `x` is the type of the operand; `axes` count from the first, and `results` says how many there are.

    >>> reducing(ShapedArray((8, 4), "float32"), axes=[1])
    Factors(operands=[range(0, 2)], results=[[0]], contracted=())
    """
    return Factors([dims(x)], [[d for d in dims(x) if d not in axes]] * results)
