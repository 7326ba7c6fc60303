"""An index as a static plan and the numbers and arrays (leaves) that it needs.

`plan_of(index, shape)` reads NumPy's notation: integers, slices, None, Ellipsis, integer arrays, boolean masks, in any
mixture. A plan is hashable, so that a program is compiled once for all indices of one form: x[2] and x[7], x[0:32] and
x[32:64]. Entries are named tuples, which are equal where their fields are; so each has a field for its kind.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from xlamini.core import Shape


class Span(NamedTuple):
    """A slice: `size` elements, every `step`-th; the first in memory at `start`, or, if None, at the next leaf.

    `safe` and `wrap` as in Point.
    """

    size: int
    step: int
    start: int | None
    safe: bool = True
    wrap: bool = False
    kind: str = "span"


class IndexPoint(NamedTuple):
    """One index on an axis: `at`, or, if that is None, the next leaf.

    `safe` promises that it is in bounds, `wrap` that a negative one counts from the end.
    """

    at: int | None
    safe: bool
    wrap: bool
    kind: str = "point"


class Points(NamedTuple):
    """An integer array, the next leaf; `wrap` as in Point."""

    wrap: bool
    kind: str = "points"


class NewAxis(NamedTuple):
    """None: a new axis of size 1."""

    kind: str = "new axis"


class Between(NamedTuple):
    """An ellipsis; its axes follow it. It separates the integer arrays before it from those after it."""

    kind: str = "between"


Entry = Span | IndexPoint | Points | NewAxis | Between


class IndexPlan(NamedTuple):
    """The static part of an index, without its leaves.

    `inserted` are axes of size 1 to be inserted into the array first: a boolean scalar is a mask on such an axis.
    `unique` promises that no element is selected twice.
    """

    entries: tuple[Entry, ...]
    inserted: Shape = ()
    unique: bool = False

    @property
    def is_basic(self) -> bool:
        """True without integer arrays, so that the result is a box of the array."""
        return not any(type(e) is Points for e in self.entries)

    @property
    def is_safe(self) -> bool:
        """True if every index is certain to be in bounds."""
        return self.is_basic and all(e.safe for e in self.entries if isinstance(e, IndexPoint | Span))

    def axes(self) -> list[Entry]:
        """The entries for one axis of the array each."""
        return [e for e in self.entries if type(e) not in (NewAxis, Between)]


class Indexed(NamedTuple):
    """A plan with its leaves."""

    plan: IndexPlan
    leaves: tuple[Any, ...]


class Rules(NamedTuple):
    """The rules for reading an index.

    `eager`: integers and slice bounds become leaves, so that they are not part of the plan. `strict`: an integer out
    of bounds is an IndexError, unless flag `check_static_indices` is off; else it is `mode`'s affair. `wrap`: negative
    indices count from the end. `reading`: so are indices of arrays whose numbers are at hand; an update drops them,
    traced or not.
    """

    eager: bool
    strict: bool = True
    wrap: bool = True
    clip: bool = False
    reading: bool = True


def whole(size: int) -> Span:
    """The slice that takes all of an axis."""
    return Span(size, 1, 0)


def bound_leaves(entries: Iterable[Entry], leaves: Sequence[Any]) -> list[Any]:
    """The number or array of each entry: that in the plan, the next leaf, or None if it has none."""
    remaining = iter(leaves)
    return [_bound(entry, remaining) for entry in entries]


def _bound(entry: Entry, remaining: Any) -> Any:
    if type(entry) is Points:
        return next(remaining)
    if type(entry) is IndexPoint:
        return next(remaining) if entry.at is None else entry.at
    if type(entry) is Span:
        return next(remaining) if entry.start is None else entry.start
    return None
