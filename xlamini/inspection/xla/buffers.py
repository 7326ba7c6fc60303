"""Memory over the program's order: which buffers are alive when, from the compiler's dumps, or from the schedule.

Only the device's main memory counts. Two values that share their place in it, such as the state of a loop before and
after an iteration, count once.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from xlamini.inspection.xla.facts import Buffer, HloMoment, XlaKernel
from xlamini.inspection.xla.hlo import PLUMBING, Module
from xlamini.inspection.xla.labels import Labelling
from xlamini.runtime.hlo.shapes import bytes_of

_SEQUENCE, _RANGES, _PEAK = "InstructionSequence:", "BufferLiveRange:", "Live ranges at"
_POSITION = re.compile(r"^ {4}(\d+):(\S+)$")
_RANGE = re.compile(r"^ {4}(\S+?):(\d+)-(\d+)$")
_ALLOCATION = re.compile(r"^allocation (\d+): size \d+(.*):$")
_COLOR = re.compile(r"\bcolor (\d+)")
_VALUE = re.compile(r"^ value: <\d+ (\S+?)(?: \(phi\))? @\d+> \(size=(\d+),offset=(\d+)\)")

LabelOf = Callable[[str], str | None]
"""The first label of the instruction with a name."""


class HloLiveness(NamedTuple):
    """The moments of a program and its buffers."""

    moments: tuple[HloMoment, ...]
    buffers: tuple[Buffer, ...]


class _Allocation(NamedTuple):
    """The place of a value in the device's memory, and its bytes."""

    allocation: int
    offset: int
    bytes: int


class _Range(NamedTuple):
    """A value that is alive from one moment to another."""

    name: str
    place: _Allocation
    first: int
    last: int


def memory_of(live_ranges: str, assignment: str, kernels: Sequence[XlaKernel], label_of: LabelOf) -> HloLiveness:
    """The memory by the compiler's live ranges and its buffer assignment; ValueError for texts of another format."""
    order, spans = _read_ranges(live_ranges.split("\n"))
    places = _read_places(assignment.split("\n"))
    ranges = [_Range(name, places[name], *span) for name, span in spans.items() if name in places]
    if not order or not ranges:
        raise ValueError("no live ranges are in the dump of the buffer assignment")
    return _memory(order, ranges, kernels, label_of)


def _read_ranges(lines: Iterable[str]) -> tuple[list[str], dict[str, tuple[int, int]]]:
    """The instructions in order, and the first and last position of each value."""
    order: list[str] = []
    spans: dict[str, tuple[int, int]] = {}
    section = ""
    for line in lines:
        heading = line.strip()
        if heading.startswith((_SEQUENCE, _RANGES, _PEAK)):
            section = heading
        elif section == _SEQUENCE and (position := _POSITION.match(line)):
            order.append(position[2])
        elif section == _RANGES and (span := _RANGE.match(line)):
            spans[span[1].removesuffix("{}")] = int(span[2]), int(span[3])
    return order, spans


def _read_places(lines: Iterable[str]) -> dict[str, _Allocation]:
    """Where each value of the main memory lies."""
    places: dict[str, _Allocation] = {}
    allocation: int | None = None
    for line in lines:
        if head := _ALLOCATION.match(line):
            color = _COLOR.search(head[2])
            is_main = "thread-local" not in head[2] and (color is None or color[1] == "0")
            allocation = int(head[1]) if is_main else None
        elif allocation is not None and (value := _VALUE.match(line)):
            places[value[1].removesuffix("{}")] = _Allocation(allocation, int(value[3]), int(value[2]))
    return places


def _memory(order: Sequence[str], ranges: list[_Range], kernels: Sequence[XlaKernel], label_of: LabelOf) -> HloLiveness:
    numbers = {kernel.name: i for i, kernel in enumerate(kernels)}
    count = max([len(order), *(each.last + 1 for each in ranges)])
    live = _live_bytes(ranges, count)
    names = [*order, *[""] * (count - len(order))]
    moments = tuple(HloMoment(numbers.get(name), size) for name, size in zip(names, live, strict=True))
    found = (Buffer(r.name, r.place.bytes, r.first, r.last, label_of(r.name.partition("{")[0])) for r in ranges)
    return HloLiveness(moments, tuple(sorted(found, key=lambda buffer: (-buffer.bytes, buffer.first))))


def _live_bytes(ranges: list[_Range], count: int) -> list[int]:
    """The bytes that are live at each moment; what shares its place counts once, with the largest size."""
    starts: dict[int, list[_Allocation]] = {}
    ends: dict[int, list[_Allocation]] = {}
    for each in ranges:
        starts.setdefault(each.first, []).append(each.place)
        ends.setdefault(each.last, []).append(each.place)
    alive: dict[tuple[int, int], list[int]] = {}
    total, found = 0, list[int]()
    for moment in range(count):
        for place in starts.get(moment, ()):
            sizes = alive.setdefault(place[:2], [])
            total -= max(sizes, default=0)
            sizes.append(place.bytes)
            total += max(sizes)
        found.append(total)
        for place in ends.get(moment, ()):
            sizes = alive[place[:2]]
            total -= max(sizes)
            sizes.remove(place.bytes)
            total += max(sizes, default=0)
    return found


def memory_by_schedule(module: Module, kernels: Sequence[XlaKernel], label_of: LabelOf) -> HloLiveness:
    """The memory of the entry by its schedule and the sizes of its values; the insides of loops and calls are left out.

    Raises ValueError if the module is not scheduled.
    """
    entry = module.entry
    if entry is None or not module.is_scheduled:
        raise ValueError("the optimized HLO is not in the order of the run")
    order = list(entry.instructions)
    last = _last_uses(module, order)
    arguments = {name for name, each in entry.instructions.items() if each.opcode == "parameter"}
    ranges = [
        _Range(name, _Allocation(i, 0, bytes_of(each.type)), 0 if name in arguments else i, last.get(name, i))
        for i, (name, each) in enumerate(entry.instructions.items())
        if each.opcode not in PLUMBING or name in arguments
    ]
    if not ranges:
        raise ValueError("the optimized HLO has no values")
    return _memory(order, ranges, kernels, label_of)


def _last_uses(module: Module, order: list[str]) -> Mapping[str, int]:
    """The position of the last instruction that reads each value, itself or what plumbing makes of it."""
    entry = module.entry
    assert entry is not None
    end = len(order) - 1
    last: dict[str, int] = {}
    for position in range(end, -1, -1):
        each = entry.instructions[order[position]]
        until = end if each.is_root or each.opcode == "parameter" else last.get(each.name, position)
        last[each.name] = until
        passes_on = each.opcode in PLUMBING or each.is_root
        for operand in each.operands:
            last[operand] = max(last.get(operand, 0), until if passes_on else position)
    return last


def labels_by_name(module: Module, labelling: Labelling) -> LabelOf:
    """The first label of each instruction that has one, by its name."""
    found = {
        each.name: labels[0]
        for around in module.computations.values()
        for each in around.instructions.values()
        if (labels := labelling.of(around, each) if each.opcode not in PLUMBING else labelling.own(around, each))
    }
    return found.get
