"""The cost of a program by the user's line, by named scope and by direction, counted from its equations."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from xlamini.core import Cost, Equation, Jaxpr
from xlamini.core.program.equation_kind import equation_cost
from xlamini.staging.call.higher_order import HigherOrder, total
from xlamini.staging.compile.pipeline import front

DIRECTIONS = ("forward", "jvp", "backward", "recomputation")


class Item(NamedTuple):
    """The cost of all runs of one equation, and where it comes from."""

    line: str
    scope: str
    direction: str
    flops: int
    bytes: int


class RunContext(NamedTuple):
    """Where a jaxpr is run: how often, and on behalf of a recomputation or a transpose."""

    runs: int = 1
    recomputes: bool = False
    backward: bool = False


class Walk:
    """One pass over a program and the jaxprs in it; collects the items, and what the count leaves out."""

    items: list[Item]
    left_out: dict[str, None]
    while_trips: int | None

    def __init__(self, while_trips: int | None):
        self.while_trips, self.items, self.left_out = while_trips, list[Item](), dict[str, None]()

    def visit(self, jaxpr: Jaxpr, place: RunContext) -> None:
        for eqn in jaxpr.eqns:
            inner = self._inner(eqn, place)
            for called, called_from in inner:
                self.visit(called, called_from)
            if not inner:
                self._count(eqn, place)

    def _inner(self, eqn: Equation, place: RunContext) -> list[tuple[Jaxpr, RunContext]]:
        primitive = eqn.primitive
        if not isinstance(primitive, HigherOrder):
            return []
        trips = self._trips(eqn) if primitive.unknown_trips else 1
        recomputes = place.recomputes or primitive.recomputes(eqn.params)
        backward = direction_of(eqn, place) == "backward"
        runs = primitive.runs(eqn.params)
        return [(jaxpr, RunContext(place.runs * n * trips, recomputes, backward)) for jaxpr, n in runs]

    def _trips(self, eqn: Equation) -> int:
        if self.while_trips is not None:
            return self.while_trips
        why = "counts as one iteration, as its trips are not known; cost(while_trips=...) takes their number"
        self._leave_out(eqn, why)
        return 1

    def _count(self, eqn: Equation, place: RunContext) -> None:
        cost = equation_cost(eqn)
        if eqn.primitive.checks.opaque:
            self._leave_out(eqn, "is counted without its operations, which are not known")
        scope = eqn.provenance.name_stack
        flops, moved = place.runs * cost.flops, place.runs * cost.bytes
        self.items.append(Item(line_of(eqn), scope, direction_of(eqn, place), flops, moved))

    def _leave_out(self, eqn: Equation, why: str) -> None:
        self.left_out[f"'{eqn.primitive.name}' at {line_of(eqn)} {why}"] = None


def line_of(eqn: Equation) -> str:
    """`file:line` of the user's program."""
    source = eqn.provenance.source
    return "unknown place" if source is None else f"{source.file}:{source.line}"


def direction_of(eqn: Equation, place: RunContext) -> str:
    """A transpose at any order makes an equation backward; what else a checkpoint runs again is recomputation."""
    rewrites = eqn.provenance.rewrites
    if "transpose" in rewrites:
        return "backward"
    if place.recomputes:
        return "recomputation"
    if place.backward:
        return "backward"
    return "jvp" if "jvp" in rewrites else "forward"


class CostReport:
    """The flops and bytes of a call, as if nothing were fused; prints as a table of the user's lines.

    A scan's body counts once per trip, a `cond` as its most expensive branch, a `shard_map` on all devices. Directions
    are `forward`; `jvp`, the values and tangents of forward mode; `backward`, all that a transpose made; and
    `recomputation`, what `checkpoint` runs again. `left_out` says in sentences what the count does not know.
    """

    items: list[Item]
    left_out: tuple[str, ...]
    name: str

    def __init__(self, name: str, items: list[Item], left_out: tuple[str, ...]):
        self.name, self.items, self.left_out = name, items, left_out
        self.flops: int = sum(item.flops for item in items)
        self.bytes: int = sum(item.bytes for item in items)

    @property
    def intensity(self) -> float:
        """Operations for each byte."""
        return self.flops / self.bytes if self.bytes else 0.0

    @property
    def by_line(self) -> dict[str, Cost]:
        """The cost of each `file:line`, the most expensive first."""
        return self._grouped(lambda item: item.line)

    @property
    def by_scope(self) -> dict[str, Cost]:
        """The cost of each `named_scope` path; "" is outside all scopes."""
        return self._grouped(lambda item: item.scope)

    @property
    def by_direction(self) -> dict[str, Cost]:
        """The cost of each direction; those without equations are zero."""
        found = self._grouped(lambda item: item.direction)
        return {name: found.get(name, Cost(0, 0)) for name in DIRECTIONS}

    def as_dict(self) -> dict[str, Any]:
        """The report as dicts, numbers and text, for json."""
        groups = {"by_line": self.by_line, "by_scope": self.by_scope, "by_direction": self.by_direction}
        shown = {name: {key: c._asdict() for key, c in group.items()} for name, group in groups.items()}
        totals = {"flops": self.flops, "bytes": self.bytes, "intensity": self.intensity}
        return {"name": self.name, **totals, **shown, "left_out": list(self.left_out)}

    def _grouped(self, key: Callable[[Item], str]) -> dict[str, Cost]:
        groups: dict[str, list[Cost]] = defaultdict(list)
        for item in self.items:
            groups[key(item)].append(Cost(item.flops, item.bytes))
        return dict(sorted(((k, total(costs)) for k, costs in groups.items()), key=lambda pair: pair[1], reverse=True))

    def __repr__(self) -> str:
        return "\n".join(self._rows())

    def _rows(self) -> Iterator[str]:
        yield f"{self.name}: {self.flops:.4g} flops, {self.bytes:.4g} bytes, {self.intensity:.3g} flops per byte"
        yield f"{'flops':>10} {'bytes':>10}  line"
        for line, cost in self.by_line.items():
            yield f"{cost.flops:>10.4g} {cost.bytes:>10.4g}  {line}"
        for name, cost in self.by_direction.items():
            if cost != Cost(0, 0):
                yield f"{cost.flops:>10.4g} {cost.bytes:>10.4g}  {name}"
        yield from (f"Left out: {sentence}." for sentence in self.left_out)


def cost_report(name: str, jaxpr: Jaxpr, while_trips: int | None = None) -> CostReport:
    """The report of a traced program; ValueError for a number of trips that is no natural number."""
    if while_trips is not None and (type(while_trips) is not int or while_trips < 0):
        raise ValueError(f"cost: while_trips must be a number of iterations such as 100, or None; got {while_trips!r}")
    walk = Walk(while_trips)
    walk.visit(front(jaxpr).jaxpr, RunContext())
    return CostReport(name, walk.items, tuple(walk.left_out))
