"""How the results of an equation are split over a mesh with explicit axes, from how its operands are.

A primitive says which dimensions of operands and results belong together: its `factors`. All rest is here: dimensions
that belong together are split alike, and what does not fit is refused. An equation that a rewrite wrote is not refused,
as no user could mend it: its results are of a type that is not split, and the compiler decides.
"""
from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from jaxlib._jax import config as _cells

from xlamini.core.avals import ShapedArray
from xlamini.core.errors import ShardingTypeError
from xlamini.core.split import Names, Split, split_into

Labels = Sequence[Hashable]


class Factors(NamedTuple):
    """A label for each dimension of each operand, and of each result: dimensions with one label are split alike.

    A dimension of an operand that is labelled None must be whole; one of a result is whole. A label that only operands
    have stands for a dimension that is computed away; where it is `contracted`, and split in every operand that has it,
    the result could be split in several ways, so that the user must say which.
    """

    operands: Sequence[Labels]
    results: Sequence[Labels]
    contracted: Labels = ()


_is_open = _cells.Config("splits_left_open", False, include_in_jit_key=True, include_in_trace_context=True)


@contextmanager
def compiler_decides() -> Iterator[None]:
    """Within it equations whose operands leave open how the result is split are not refused."""
    before = _is_open.swap_local(True)
    try:
        yield
    finally:
        _is_open.set_local(before)


def dims(aval: ShapedArray) -> Labels:
    """A label for each dimension: its number."""
    return range(aval.ndim)


def apart(avals: Sequence[ShapedArray]) -> list[Labels]:
    """Labels of arrays that have nothing to do with each other."""
    return [[(i, d) for d in dims(aval)] for i, aval in enumerate(avals)]


def where_split(x: ShapedArray) -> Labels:
    """Labels that hold another array to how `x` is split: it may be split where `x` is, and there alike."""
    entries = ((),) * x.ndim if x.split is None else x.split.entries
    return [d if names else None for d, names in enumerate(entries)]


def alike(avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], whole: Sequence[int] = ()) -> Factors:
    """The factors of an operation that leaves dimensions where they are; those in `whole` must not be split."""
    labels = [[None if d in whole else d for d in dims(a)] for a in (*avals, *outs)]
    return Factors(labels[: len(avals)], labels[len(avals) :])


def in_front(avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], count: int) -> Factors:
    """The factors of an operation on stacks: the first `count` dimensions stay, all others must be whole."""
    return alike(avals, outs, range(count, max(a.ndim for a in (*avals, *outs))))


def broadcasting(avals: Sequence[ShapedArray], out: ShapedArray) -> Factors:
    """The factors of an operation on elements: dimensions are paired from the last on, those of size 1 stretch."""
    operands = []
    for i, aval in enumerate(avals):
        places = range(out.ndim - aval.ndim, out.ndim)
        operands.append([d if n == out.shape[d] else (i, d) for d, n in zip(places, aval.shape, strict=True)])
    return Factors(operands, [dims(out)])


def reducing(x: ShapedArray, axes: Sequence[int], results: int = 1) -> Factors:
    """The factors of an operation that computes `axes` away and leaves the other dimensions."""
    return Factors([dims(x)], [[d for d in dims(x) if d not in axes]] * results)


def divided(
    primitive: Any, out: Any, avals: Sequence[ShapedArray], params: dict[str, Any], lenient: bool
) -> tuple[Any, bool]:
    """The types of an equation's results, split as its operands say, and whether these fit together.

    If they do not, the results are not split where that is allowed (`lenient`, or within `compiler_decides`), else it
    is a ShardingTypeError.
    """
    if primitive.higher_order and primitive.written("factors") is None:
        return out, True
    outs, fits = out if primitive.multiple_results else [out], True
    try:
        splits: Sequence[Split | None] = primitive.splits(avals, outs, params)
    except ShardingTypeError:
        if not lenient and not _is_open.value:
            raise
        splits, fits = [None] * len(outs), False
    found = [a.divided(s) for a, s in zip(outs, splits, strict=True)]
    return found if primitive.multiple_results else found[0], fits


def split_results(
    primitive: Any, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], params: dict[str, Any]
) -> list[Split | None]:
    """How each result is split; ShardingTypeError where the operands do not fit."""
    splits = [a.split for a in avals if a.split is not None]
    meshes = {s.mesh for s in splits}
    if len(meshes) > 1:
        raise ShardingTypeError(
            f"{primitive}: operands are split over different meshes, {' and '.join(map(str, meshes))}; move one with "
            "xlamini.reshard"
        )
    factors = primitive.factors(avals, outs, params)
    found = _found(primitive, avals, factors)
    return [_of_result(primitive, avals, out, labels, found, splits[0]) for out, labels in
            zip(outs, factors.results, strict=True)]


def _found(primitive: Any, avals: Sequence[ShapedArray], factors: Factors) -> dict[Hashable, Names]:
    """Along which axes each label is split."""
    found: dict[Hashable, Names] = {}
    for aval, labels in zip(avals, factors.operands, strict=True):
        for dim, (label, names) in enumerate(zip(labels, _entries(aval), strict=True)):
            if names and label is None:
                _refuse_dimension(primitive, avals, aval, dim)
            if names and found.setdefault(label, names) != names:
                raise ShardingTypeError(
                    f"{primitive}: operands are split differently, {_types(avals)}: dimension {dim} of one is split "
                    f"along {_said(names)}, what belongs to it along {_said(found[label])}; move one with "
                    "xlamini.reshard(x, P(...))"
                )
    _check_contracted(primitive, avals, factors)
    return found


def _refuse_dimension(primitive: Any, avals: Sequence[ShapedArray], aval: ShapedArray, dim: int) -> None:
    raise ShardingTypeError(
        f"{primitive} of {_types(avals)}: dimension {dim} of {aval.str_short()} must be whole here, but is split along "
        f"{_said(_entries(aval)[dim])}; first xlamini.reshard the operand to a spec without it, pass out_sharding= "
        "if the function takes it, or let the compiler decide within xlamini.sharding.auto_axes"
    )


def _check_contracted(primitive: Any, avals: Sequence[ShapedArray], factors: Factors) -> None:
    for label in factors.contracted:
        pairs = zip(avals, factors.operands, strict=True)
        found = [_entries(a)[list(labels).index(label)] for a, labels in pairs if label in labels]
        if all(found):
            raise ShardingTypeError(
                f"{primitive}: the operands {_types(avals)} are split along {_said(found[0])} in the dimension that is "
                "summed over, so that the result may be split along it or whole; say which with out_sharding=P(...)"
            )


def _of_result(
    primitive: Any,
    avals: Sequence[ShapedArray],
    out: ShapedArray,
    labels: Labels,
    found: dict[Hashable, Names],
    like: Split,
) -> Split | None:
    entries = tuple(found.get(label, ()) if label is not None else () for label in labels)
    split, used = split_into(like.mesh, entries), [name for names in entries for name in names]
    for name in used:
        if used.count(name) > 1:
            raise ShardingTypeError(
                f"{primitive} of {_types(avals)} would be split along {name!r} twice, as {split}; reshard an operand, "
                "or pass out_sharding= if the function takes it"
            )
    for dim, size in enumerate(out.shape):
        if split is not None and size % split.parts(dim):
            raise ShardingTypeError(
                f"{primitive} of {_types(avals)}: dimension {dim} of the result has size {size}, which cannot be split "
                f"into the {split.parts(dim)} parts along {_said(entries[dim])} that the operand is split into; first "
                "xlamini.reshard the operand to a spec without that axis"
            )
    return split


def _entries(aval: ShapedArray) -> Sequence[Names]:
    return ((),) * aval.ndim if aval.split is None else aval.split.entries


def _types(avals: Sequence[ShapedArray]) -> str:
    return " and ".join(a.str_short() for a in avals)


def _said(names: Names) -> str:
    return " and ".join(map(repr, names))
