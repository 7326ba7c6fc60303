"""Sharding propagation along explicit mesh axes: from the operands of an equation to its results.

A primitive's factors say which dimensions of operands and results belong to each other; these get one sharding. Where
operands conflict, the results are sharded as far as they agree, the compiler chooses the rest, and a warning names the
line; under the flag `strict_sharding` a conflict is an error. There is neither for an equation that a rewrite made,
because no user could mend it.
"""
from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from jaxlib._jax import config as _cells

from xlamini.core.caching.memo import Memo
from xlamini.core.errors import ShardingTypeError
from xlamini.core.errors.frames import user_line, user_stacklevel
from xlamini.core.flags.config import strict_sharding
from xlamini.core.program.avals import Avals, Params, ShapedArray
from xlamini.core.sharding.aval_sharding import AvalSharding, Names, split_into
from xlamini.core.sharding.factors import Factors, Labels
from xlamini.core.sharding.partial_sums import Sums, sums_of_results
from xlamini.core.sharding.partition_spec import PartitionSpec

_reported = Memo("sharding: lines that were warned of", 1024, counted=False)
_is_open = _cells.Config("splits_left_open", False, include_in_jit_key=True, include_in_trace_context=True)


@contextmanager
def compiler_decides() -> Iterator[None]:
    """Within it equations whose operands leave open how the result is split are not refused."""
    before = _is_open.swap_local(True)
    try:
        yield
    finally:
        _is_open.set_local(before)


class Splits(NamedTuple):
    """How each result is split; where something does not fit, as far as they can be, and what that is."""

    results: Sequence[AvalSharding | None]
    sharding_conflict: str | None = None


def report(conflict: str, found: AvalSharding | None, ndim: int) -> None:
    """The warning, or ShardingTypeError, for operands that do not fit together, but not within `compiler_decides`.

    `found` is how the result is sharded as far as the operands agree.
    """
    if _is_open.value:
        return
    if strict_sharding.value:
        raise ShardingTypeError(conflict)
    spec = PartitionSpec(*[None] * ndim) if found is None else found.spec
    warn_of_open_split(f"{conflict}. The compiler decides; out_sharding={spec} would say it")


def warn_of_open_split(text: str) -> None:
    """A warning at the user's line, one for each line."""
    line = user_line()
    if line in _reported.table:
        return
    _reported.keep(line, True)
    warnings.warn(f"{text} (config.update('strict_sharding', True) makes this an error)", stacklevel=user_stacklevel())


def propagate_sharding(
    primitive: Any, out: Any, avals: Avals, params: Params
) -> tuple[Any, str | None]:
    """The types of an equation's results, split as its operands say, and what of these does not fit together."""
    rules = primitive.sharding
    if primitive.higher_order and rules.factors is None:
        return out, None
    outs = out if primitive.multiple_results else [out]
    if rules.splits is None:
        splits, conflict = split_results(primitive, avals, outs, params)
    else:
        splits, conflict = rules.splits(avals, outs, params)
    sums = [sums_of_results(avals)] * len(outs) if rules.sums is None else rules.sums(avals, outs, params)
    each = zip(outs, splits, sums, strict=True)
    found = [_summed(a, split, sums, avals) for a, split, sums in each]
    return found if primitive.multiple_results else found[0], conflict


def _summed(aval: ShapedArray, split: AvalSharding | None, sums: Sums, avals: Avals) -> ShapedArray:
    """The type of a result that is split so, unreduced and reduced along the axes of `sums`."""
    if split is None and any(sums):
        mesh = next(a.explicit_sharding.mesh for a in avals if a.explicit_sharding is not None)
        split = AvalSharding(mesh, ((),) * aval.ndim)
    return aval.with_sharding(split and split.with_sums(*sums))


def split_results(
    primitive: Any, avals: Avals, outs: Avals, params: Params
) -> Splits:
    """How the results are split, by the primitive's factors."""
    splits = [a.explicit_sharding for a in avals if a.explicit_sharding is not None]
    meshes = {s.mesh for s in splits}
    if len(meshes) > 1:
        said = " and ".join(map(str, meshes))
        conflict = f"{primitive}: operands are split over different meshes, {said}; move one with xlamini.reshard"
        return Splits([None] * len(outs), conflict)
    rule = primitive.sharding.factors
    factors = Factors(_whole(avals), _whole(outs)) if rule is None else rule(avals, outs, params)
    solving = _Solving(primitive, avals, factors)
    results = [solving.of_result(*each, splits[0]) for each in zip(outs, solving.factors.results, strict=True)]
    return Splits(results, next(iter(solving.conflicts), None))


def _whole(avals: Avals) -> list[Labels]:
    """The labels of arrays that must not be split."""
    return [(None,) * a.ndim for a in avals]


class _Solving:
    """Finds along which axes each label is split; what does not fit is left out, and noted."""

    def __init__(self, primitive: Any, avals: Avals, factors: Factors):
        self.primitive, self.avals, self.factors = primitive, avals, factors
        self.conflicts: list[str] = []
        self.found: dict[Hashable, Names] = {}
        for aval, labels in zip(avals, factors.operands, strict=True):
            for dim, (label, names) in enumerate(zip(labels, _entries(aval), strict=True)):
                if names:
                    self._note(aval, dim, label, names)
        for label in factors.contracted:
            self._check_contracted(label)

    @property
    def _types(self) -> str:
        return " and ".join(a.str_short() for a in self.avals)

    def _note(self, aval: ShapedArray, dim: int, label: Hashable, names: Names) -> None:
        if label is None:
            self.conflicts.append(
                f"{self.primitive} of {self._types}: dimension {dim} of {aval.str_short()} must be whole here, but is "
                f"split along {_said(names)}; first xlamini.reshard the operand to a spec without it, pass "
                "out_sharding= if the function takes it, or let the compiler decide within xlamini.sharding.auto_axes"
            )
        elif self.found.setdefault(label, names) != names:
            self.conflicts.append(
                f"{self.primitive}: operands are split differently, {self._types}: dimension {dim} of one is split "
                f"along {_said(names)}, what belongs to it along {_said(self.found[label])}; move one with "
                "xlamini.reshard(x, P(...))"
            )
            self.found[label] = ()

    def _check_contracted(self, label: Hashable) -> None:
        pairs = zip(self.avals, self.factors.operands, strict=True)
        found = [_entries(a)[list(labels).index(label)] for a, labels in pairs if label in labels]
        if all(found):
            self.conflicts.append(
                f"{self.primitive}: the operands {self._types} are split along {_said(found[0])} in the dimension that "
                "is summed over, so that the result may be split along it or whole; say which with out_sharding=P(...)"
            )

    def of_result(self, out: ShapedArray, labels: Labels, like: AvalSharding) -> AvalSharding | None:
        """How one result is split."""
        entries = [self.found.get(label, ()) if label is not None else () for label in labels]
        self._use_once(entries)
        split = split_into(like.mesh, tuple(entries))
        for dim, size in enumerate(out.shape):
            if split is not None and size % split.parts(dim):
                self._refuse_size(dim, size, split)
                entries[dim] = ()
        return split_into(like.mesh, tuple(entries))

    def _use_once(self, entries: list[Names]) -> None:
        used: set[Any] = set()
        for dim, names in enumerate(entries):
            twice = used.intersection(names)
            if twice:
                self.conflicts.append(
                    f"{self.primitive} of {self._types} would be split along {_said(tuple(twice))} twice, in two "
                    "dimensions; reshard an operand, or pass out_sharding= if the function takes it"
                )
                entries[dim] = ()
            used.update(names)

    def _refuse_size(self, dim: int, size: int, split: AvalSharding) -> None:
        self.conflicts.append(
            f"{self.primitive} of {self._types}: dimension {dim} of the result has size {size}, which cannot be split "
            f"into the {split.parts(dim)} parts along {_said(split.entries[dim])} that the operand is split into; "
            "first xlamini.reshard the operand to a spec without that axis"
        )


def _entries(aval: ShapedArray) -> Sequence[Names]:
    return ((),) * aval.ndim if aval.explicit_sharding is None else aval.explicit_sharding.entries


def _said(names: Names) -> str:
    return " and ".join(map(repr, names))
