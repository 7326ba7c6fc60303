"""What XLA says about a program that it compiled for one target; the fields are those of the report's schema.

A label is the end of an operation's name in XLA, "tanh#e0.2": the equation that it comes from. An index of a kernel is
one into `Examined.kernels`, a moment is an index into `Examined.moments`.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from xlamini.staging.aot.kernels import OwnKernel


class HloCost(NamedTuple):
    """Operations and bytes of one call on one device."""

    flops: float
    bytes: float
    source: str


class HloMemory(NamedTuple):
    """Bytes on one device, as the compiler reports them; `capacity` is the device's memory, if it has a size."""

    peak: int
    arguments: int
    outputs: int
    temporaries: int
    code: int
    capacity: int | None


class Roof(NamedTuple):
    """Peak operations a second, and peak bytes a second between the device and its memory."""

    flops: float
    bandwidth: float
    source: str


class MeasuredKernel(NamedTuple):
    """The seconds of all runs of a kernel in a call. A moment in which several kernels ran counts for each in parts.

    Half of the calls took `low` to `high`. For `unseen` of the seconds a pool of threads computed it, which record
    nothing. Where it ran more than once, `first` and `last` are the seconds of those runs.
    """

    seconds: float
    low: float
    high: float
    unseen: float
    runs: int
    first: float | None
    last: float | None


class MeasuredCall(NamedTuple):
    """The seconds of a call by the clock: the median of `count` calls, half of which took `low` to `high`.

    Its parts, as seen by the profiler, are the seconds in `kernels`, of which `unseen` in pools of threads that record
    nothing, those `between` kernels, and those `around` all of them, before the first and after the last; `low` and
    `high` are those of half of the calls. Under the profiler a call took the seconds `traced`. `threads` worked;
    `source` says all this in words, and how often the function ran.
    """

    seconds: float
    low: float
    high: float
    count: int
    traced: float
    kernels: float
    unseen: float
    between: float
    between_low: float
    between_high: float
    around: float
    around_low: float
    around_high: float
    threads: int
    source: str


class XlaKernel(NamedTuple):
    """One instruction of the optimized program that runs by itself; costs and seconds are those of all its runs.

    If it is `inserted`, no equation is inside, and the labels are those of the equations that it serves.
    """

    name: str
    kind: str
    opcode: str
    type: str
    runs: int
    flops: float
    bytes: float
    seconds: float | None
    time: str | None
    labels: tuple[str, ...]
    inserted: bool
    line: int
    hlo: str
    measured: MeasuredKernel | None = None


class HloBoundary(NamedTuple):
    """A value that one kernel writes to memory and others read; `gain` is in seconds."""

    value: str
    bytes: int
    producer: int
    consumers: tuple[int, ...]
    reason: str | None
    gain: float | None


class Coverage(NamedTuple):
    """Of the instructions that are no plumbing, how many have a label; the names of those that have none."""

    instructions: int
    with_id: int
    inserted: tuple[str, ...]


class HloMoment(NamedTuple):
    """A step of the program's order: the kernel that runs, and the bytes that are live."""

    kernel: int | None
    bytes: int


class Buffer(NamedTuple):
    """A value in memory, from the moment it is made to the last one that reads it."""

    name: str
    bytes: int
    first: int
    last: int
    label: str | None


class ExchangedData(NamedTuple):
    """A collective: `asked` if an equation of the user's is one, else the partitioner inserted it."""

    kind: str
    bytes: int
    times: int
    group: int
    label: str | None
    op: str
    line: str
    asked: bool


class ProgramText(NamedTuple):
    """A text with the labels of each of its lines; `count` is its number of instructions."""

    title: str
    lines: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    count: int


class HloPass(NamedTuple):
    """The program after one pass of the compiler; without lines if the pass changed nothing.

    `made` are the indices of the lines that the pass made, `gone` of those that the next one takes away.
    """

    name: str
    changed: bool
    text: ProgramText
    made: tuple[int, ...] = ()
    gone: tuple[int, ...] = ()


@dataclass
class Examined:
    """A program compiled for one target, or the reason why it was not.

    `unavailable` says in a sentence why a part is missing: "passes", "assembly", "kernels", "boundaries", "buffers",
    "collectives".
    """

    name: str
    platform: str = ""
    device: str = ""
    devices: int = 1
    error: str | None = None
    unavailable: dict[str, str] = field(default_factory=dict)
    lower_seconds: float | None = None
    compile_seconds: float | None = None
    cost: HloCost | None = None
    memory: HloMemory | None = None
    prediction: tuple[float, str] | None = None
    measured: MeasuredCall | None = None
    roof: Roof | None = None
    kernels: tuple[XlaKernel, ...] = ()
    own_kernels: tuple[OwnKernel, ...] = ()
    """The kernels of `pallas_call`."""
    boundaries: tuple[HloBoundary, ...] = ()
    coverage: Coverage | None = None
    moments: tuple[HloMoment, ...] = ()
    buffers: tuple[Buffer, ...] = ()
    collectives: tuple[ExchangedData, ...] = ()
    passes: tuple[HloPass, ...] = ()
    hlo: ProgramText | None = None
    assembly: ProgramText | None = None
