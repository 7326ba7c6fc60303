"""The flag `no_collectives`: mesh axes along which a program may not communicate.

Types along explicit axes tell it: a split or a sum that an equation's results no longer have has been undone by
communication. A collective names its axes.
"""
from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any, Final

from xlamini.core.caching.memo import clear_caches
from xlamini.core.errors import ForbiddenCollectiveError
from xlamini.core.flags.config import TRACE, Flag
from xlamini.core.program.avals import Avals, ShapedArray


class _Axes(Flag):
    """A flag whose value is a set of names. Nothing is looked at before it has had one."""

    in_use: bool = False

    def checked(self, value: Any) -> frozenset[Any]:
        names = super().checked(frozenset(value) if isinstance(value, set) else value)
        if names and not self.in_use:
            self.in_use = True
            clear_caches()  # which have equations that nobody looked at
        return names

    def parse(self, text: str) -> frozenset[str]:
        return self.checked({name for name in text.split(",") if name})


no_collectives: Final = _Axes(
    "no_collectives", frozenset(), "names of mesh axes along which programs may not communicate", affects=TRACE
)
"""A context manager: with `no_collectives({"x"})` devices along the axis x may not communicate.

It holds for explicit axes and for collectives in `shard_map`; ForbiddenCollectiveError names what would communicate.

>>> mesh = xlamini.make_mesh((1,), ("x",))
>>> total = xlamini.shard_map(lambda x: lax.psum(x, "x"), mesh=mesh, in_specs=xlamini.P("x"), out_specs=xlamini.P())
>>> with no_collectives({"x"}):
...     total(jnp.ones(2))
Traceback (most recent call last):
    ...
xlamini.core.errors.ForbiddenCollectiveError: psum communicates along the mesh axis 'x', which no_collectives forbids
"""


def check_names(what: Any, names: Iterable[Hashable]) -> None:
    """ForbiddenCollectiveError if a collective along these axes is forbidden."""
    forbidden = sorted(no_collectives.value.intersection(names), key=str)
    if forbidden:
        axes = " and ".join(map(repr, forbidden))
        raise ForbiddenCollectiveError(f"{what} communicates along the mesh axis {axes}, which no_collectives forbids")


def communicates(primitive: Any, avals: Avals, outs: Avals) -> bool:
    """Whether results lack a split, or unreduced terms, that operands have; an error if that is forbidden.

    Such an equation has no kind that others share, since others may be in another context.
    """
    if not no_collectives.in_use:
        return False
    split, terms = _axes(avals)
    split_out, terms_out = _axes(outs)
    undone = (terms - terms_out) | (split - split_out - terms_out)
    if primitive.sharding.chooses and not primitive.multiple_results:
        undone |= _moved(avals[0], outs[0])
    check_names(primitive, undone)
    return bool(undone)


def _moved(x: ShapedArray, out: ShapedArray) -> frozenset[Any]:
    """The axes along which a value is split in another dimension than before."""
    before, after = (
        {name: dim for dim, names in enumerate(a.explicit_sharding.entries) for name in names}
        if a.explicit_sharding
        else {}
        for a in (x, out)
    )
    return frozenset(name for name in before.keys() & after.keys() if before[name] != after[name])


def _axes(avals: Avals) -> tuple[frozenset[Any], frozenset[Any]]:
    """The axes along which some of these types are split, and are terms of sums."""
    specs = [a.explicit_sharding for a in avals if a.explicit_sharding is not None]
    split = frozenset(name for s in specs for names in s.entries for name in names)
    return split, frozenset(name for s in specs for name in s.unreduced)
