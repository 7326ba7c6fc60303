"""The memory that a program will need, before it is compiled: the peak, what is held then, and who needs it."""
from __future__ import annotations

import dataclasses
import itertools
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from xlamini.core import Equation, Jaxpr
from xlamini.runtime.execution.host_memory import shown_bytes
from xlamini.runtime.targets.topology import Target
from xlamini.staging.compile.cost_report import RunContext, direction_of, line_of
from xlamini.staging.compile.cse import merge
from xlamini.staging.compile.liveness import Held, Liveness, Moment
from xlamini.staging.compile.pipeline import front

SHOWN = 12
"""How many values a printed plan lists."""
TOO_LARGE = sys.maxsize
"""The peak of a program that a compiler refuses, as it fits into no device."""
_TOP = RunContext()


class Value(NamedTuple):
    """An array that is held at the peak: its bytes and type, who made it, and the last line that needs it."""

    bytes: int
    type: str
    line: str
    variable: str | None
    scope: str
    direction: str
    needed_by: str
    kept_for_backward: bool

    def __str__(self) -> str:
        name = f" {self.variable}" if self.variable else ""
        why = f"kept for the backward pass of {self.needed_by}" if self.kept_for_backward else f"until {self.needed_by}"
        return f"{shown_bytes(self.bytes):>11}  {self.type}{name}, made at {self.line} ({self.direction}), {why}"


@dataclasses.dataclass(frozen=True)
class MemoryPlan:
    """The memory of a program on one device, from its equations: `peak` is in bytes; it prints as a table.

    The model: arguments and results have their memory all the time, and a donated argument shares it with a result.
    Elementwise results that only loops read are fused and not stored. For a TPU the bytes are what its compiler says,
    which pads, rounds and keeps on the chip as no model does. `held` is what is alive at the moment of the peak beside
    arguments and results, the largest first. `left_out` says in sentences what is not known.
    """

    name: str
    platform: str
    arguments: int
    results: int
    donated: int
    """The bytes of results that lie in donated arguments."""
    donation_saves: int
    """The bytes of further results that would, if all arguments were donated."""
    moment: Moment = dataclasses.field(repr=False)
    """The equation at the peak, and what is held then."""
    left_out: tuple[str, ...] = ()
    peak_of: Callable[[int, int, Target | None], int] | None = dataclasses.field(default=None, repr=False)
    """The peak for another leading dimension, `(now, then, target)`; None where there is no function to trace."""

    @property
    def temporaries(self) -> int:
        """The bytes held beside arguments and results at the peak."""
        return self.moment.bytes

    @property
    def on_chip(self) -> int:
        """The bytes of `held` that a TPU has on its chip, or as bfloat16, or fused, so not among `temporaries`."""
        held = sum(value.aval.nbytes for value in self.moment.held)
        return max(0, held - self.temporaries) if self.platform == "tpu" else 0

    @property
    def peak(self) -> int:
        """The most bytes that are in memory at one time."""
        return self.arguments + self.results - self.donated + self.temporaries

    @property
    def at(self) -> str:
        """The line of the user's program at which the peak is."""
        return line_of(self.moment.path[-1]) if self.moment.path else "the results"

    @cached_property
    def held(self) -> list[Value]:
        """What is in memory at the peak, beside arguments and results, the largest first."""
        return sorted((_value(h) for h in self.moment.held), key=lambda value: -value.bytes)

    @property
    def kept_for_backward(self) -> int:
        """The bytes at the peak that only the backward pass still needs: what `checkpoint` can save at most."""
        return sum(value.bytes for value in self.held if value.kept_for_backward)

    def largest(self, batch: int, *, target: Target | None = None, limit: int | None = None) -> int:
        """The largest leading dimension, where arguments have `batch` now, whose peak fits into a target's memory.

        `limit` is a number of bytes in place of the target's memory. The function is traced again for other sizes, and
        nothing is compiled. Raises ValueError if no argument has that dimension, if not even 1 fits, and without a
        target and a limit; TypeError for what is no target, and for the plan of a stage, which traces no function.

        >>> plan = xlamini.jit(lambda x: (x @ x.T).sum()).memory_plan(xlamini.numpy.ones((8, 4)))
        >>> plan.largest(batch=8, limit=10**6)
        498
        """
        if (peak_of := self.peak_of) is None:
            raise TypeError("largest: this plan has no function to trace again; use jit(f).memory_plan(...)")
        if target is not None and not isinstance(target, Target):
            raise TypeError(f"largest: target must be made by xlamini.target('gpu:h200'), got {target!r}")
        room = limit if limit is not None or target is None else target.memory
        if room is None:
            raise ValueError("largest: give target=xlamini.target('gpu:h200'), or limit= as a number of bytes")
        return _largest(lambda size: peak_of(batch, size, target), batch, room)

    def as_dict(self) -> dict[str, Any]:
        """The plan as dicts, numbers and text, for json."""
        names = "name", "platform", "peak", "arguments", "results", "donated", "temporaries", "on_chip", "at"
        numbers = {name: getattr(self, name) for name in (*names, "donation_saves", "kept_for_backward")}
        return {**numbers, "held": [value._asdict() for value in self.held], "left_out": list(self.left_out)}

    def __repr__(self) -> str:
        return "\n".join(self._rows())

    def _rows(self) -> Iterator[str]:
        yield f"{self.name}: {shown_bytes(self.peak)} at the peak on {self.platform}, at {self.at}"
        yield f"{shown_bytes(self.arguments):>11}  arguments"
        yield f"{shown_bytes(self.results):>11}  results" + (
            f", of which {shown_bytes(self.donated)} lie in donated arguments" if self.donated else ""
        )
        yield from map(str, self.held[:SHOWN])
        if self.on_chip:
            yield f"Of these {shown_bytes(self.on_chip)} are on the chip, as bfloat16 or fused, which is not counted."
        if self.kept_for_backward:
            kept = shown_bytes(self.kept_for_backward)
            yield f"For the backward pass {kept} are kept; xlamini.checkpoint keeps fewer of them."
        if self.donation_saves > 0:
            yield f"Donating arguments saves up to {shown_bytes(self.donation_saves)}."
        yield from (f"Left out: {sentence}." for sentence in self.left_out)


def memory_plan(name: str, jaxpr: Jaxpr, donated: Sequence[bool], platform: str) -> MemoryPlan:
    """The plan of a traced program; `donated` marks the arguments, its last inputs, whose memory results may take."""
    lowered = front(jaxpr).jaxpr
    program = merge(lowered) if platform == "cpu" else lowered
    given, made = ([a.nbytes for a in avals] for avals in (jaxpr.in_avals, jaxpr.out_avals))
    arguments = given[len(given) - len(donated) :]
    shared = _shared(list(itertools.compress(arguments, donated)), made)
    saves = _shared(arguments, made) - shared
    moment = Liveness(program, platform).run()
    return MemoryPlan(name, platform, sum(given), sum(made), shared, saves, moment, tuple(_left_out(program)))


def with_bytes_of(plan: MemoryPlan, stats: Any) -> MemoryPlan:
    """The plan with the bytes that a compiler reports."""
    return dataclasses.replace(
        plan,
        arguments=stats.argument_size_in_bytes,
        results=stats.output_size_in_bytes,
        donated=stats.alias_size_in_bytes,
        moment=plan.moment._replace(bytes=stats.temp_size_in_bytes),
        left_out=(*plan.left_out, f"the bytes are those of the compiler for the {plan.platform}, what is held is not"),
    )


def _shared(donated: Sequence[int], results: Sequence[int]) -> int:
    """The bytes of results that lie in donated arguments of the same size."""
    free, taken = list(donated), 0
    for n in results:
        if n in free:
            free.remove(n)
            taken += n
    return taken


def _value(held: Held) -> Value:
    maker, last = held.maker, held.last
    source = maker and maker.provenance.source
    direction = "an argument" if maker is None else direction_of(maker, _TOP)
    needed_backward = last is not None and direction_of(last, _TOP) == "backward"
    backward = maker is not None and direction != "backward" and needed_backward
    return Value(
        held.aval.nbytes,
        held.aval.str_short(),
        "the start" if maker is None else line_of(maker),
        source.target if source else None,
        maker.provenance.name_stack if maker else "",
        direction,
        "the end" if last is None else line_of(last),
        backward,
    )


def _left_out(jaxpr: Jaxpr) -> Iterator[str]:
    for eqn in jaxpr.eqns:
        if eqn.primitive.checks.opaque:
            yield f"'{eqn.primitive.name}' at {line_of(eqn)} runs code whose memory is not known"
        elif _is_split(eqn):
            where = f"'{eqn.primitive.name}' at {line_of(eqn)}"
            yield f"{where} is counted as on one device: arrays outside whole, those inside by shards"


def _is_split(eqn: Equation) -> bool:
    return "mesh" in eqn.params


def _largest(peak: Callable[[int], int], batch: int, limit: int) -> int:
    """The largest size whose peak fits: peaks are nearly linear in the size, and each may be a compilation."""
    fits, most, size, step = (0, 0), None, batch, 0
    while most is None or most[0] - fits[0] > 1:
        at, step = (size, peak(size)), step + 1
        fits, most = (at, most) if at[1] <= limit else (fits, at)
        size = _next_size(fits, most, limit, halve=step % 3 == 0)
    if fits[0] == 0:
        need = shown_bytes(most[1]) if most[1] < TOO_LARGE else "more than the compiler can place"
        raise ValueError(f"largest: not even a size of 1 fits into {shown_bytes(limit)}; it needs {need}")
    return fits[0]


def _next_size(fits: tuple[int, int], most: tuple[int, int] | None, limit: int, halve: bool) -> int:
    """The size to try between one that fits and one that does not, given with their peaks."""
    low, peak = fits
    if most is None:
        return max(2 * low, low * limit // max(peak, 1))
    high, above = most
    if halve or above == TOO_LARGE:
        return (low + high) // 2
    return min(max(low + (limit - peak) * (high - low) // (above - peak), low + 1), high - 1)
