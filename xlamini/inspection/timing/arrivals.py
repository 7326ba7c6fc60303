"""When each device arrived at each run of a collective, by one clock.

A run of a collective begins when its device arrives, and ends when all have arrived and the data are there. An
asynchronous one arrives at its start, and waits in its end, such as `all-reduce-done`. Hosts have clocks of their own,
which are set by the ends of the collectives, as these come at the same time.
"""
from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from xlamini.inspection.timing.trace.runs import KernelRun
from xlamini.inspection.timing.trace.trace import Trace
from xlamini.runtime.hlo.collectives import KINDS

_COLLECTIVE = re.compile(rf"({KINDS})(-start)?(\.\d+)?")
_GROUPS = re.compile(r"\breplica_groups=\{(\{.*?\})\}")
_IOTA = re.compile(r"\breplica_groups=\[(\d+),(\d+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
_PAIRS = re.compile(r"\bsource_target_pairs=\{(\{.*?\})\}")


Kernel = tuple[str, str]
"""The names of a module, and of a kernel in it."""
_Runs = dict[tuple[str, int], KernelRun]


class Arrival(NamedTuple):
    """A device at one run of a collective: when it arrived, began to wait, and went on, in nanoseconds."""

    device: str
    process: str
    start: float
    begin: float
    end: float


def arrivals(trace: Trace) -> dict[Kernel, list[list[Arrival]]]:
    """The arrivals at each collective: for each of its runs those of the devices that wait for each other."""
    runs: dict[Kernel, dict[str, list[KernelRun]]] = {}
    if len(trace.devices) < 2:
        return {}
    for device, some in trace.devices.items():
        for run in some:
            runs.setdefault((run.module, run.kernel), {}).setdefault(device, []).append(run)
    found = {key: list(_rounds(trace, key, runs)) for key in runs if _is_collective(trace, key, runs[key])}
    clocks = _clocks([together for rounds in found.values() for together in rounds])
    return {key: [_set(together, clocks) for together in rounds] for key, rounds in found.items() if rounds}


def _is_collective(trace: Trace, key: Kernel, runs: dict[str, list[KernelRun]]) -> bool:
    program, (first, *_) = trace.program(*key), next(iter(runs.values()))
    found = program.instruction(key[1]) if program else None
    return bool(_COLLECTIVE.fullmatch(found.opcode if found else first.opcode or key[1]))


def _rounds(trace: Trace, key: Kernel, runs: dict[Kernel, dict[str, list[KernelRun]]]) -> Iterator[list[Arrival]]:
    module, kernel = key
    program = trace.program(module, kernel)
    done = program.done(kernel) if program else kernel.replace("-start", "-done")
    of_device, ends = (
        {device: _numbered(some) for device, some in runs.get((module, name), {}).items()} for name in (kernel, done)
    )
    if not set.intersection(*(set(some) for some in of_device.values())):  # processes number their calls as they like
        of_device, ends = ({d: _in_order(some) for d, some in found.items()} for found in (of_device, ends))
    instruction = program.instruction(kernel) if program else None
    every = groups(instruction.attributes if instruction else "", list(trace.devices))
    for number in dict.fromkeys(number for some in of_device.values() for number in some):
        for group in every:
            there = [device for device in group if number in of_device.get(device, ())]
            if len(there) > 1:
                yield [_arrival(d, of_device[d][number], ends.get(d, {}).get(number)) for d in there]


def _numbered(runs: list[KernelRun]) -> _Runs:
    """The runs of a kernel by their calls, and by their number in a call."""
    found, counts = _Runs(), Counter[str]()
    for run in runs:
        found[run.call, counts[run.call]] = run
        counts[run.call] += 1
    return found


def _in_order(runs: _Runs) -> _Runs:
    return {("", number): run for number, run in enumerate(runs.values())}


def _arrival(device: str, run: KernelRun, done: KernelRun | None) -> Arrival:
    waits = done or run
    return Arrival(device, run.process, run.start, waits.start, waits.end)


def groups(attributes: str, devices: list[str]) -> list[list[str]]:
    """The devices that wait for each other; all of them, where the program does not say, or says it of others."""
    numbers = _numbers(attributes, len(devices))
    if sorted(n for group in numbers for n in group) != list(range(len(devices))):
        return [devices]
    return [[devices[n] for n in group] for group in numbers]


def _numbers(attributes: str, count: int) -> list[list[int]]:
    if iota := _IOTA.search(attributes):
        sizes = [int(n) for n in iota[3].split(",")]
        order = [int(n) for n in iota[4].split(",")] if iota[4] else range(len(sizes))
        if {int(iota[1]) * int(iota[2]), int(np.prod(sizes))} != {count} or sorted(order) != list(range(len(sizes))):
            return []
        return np.arange(count).reshape(sizes).transpose(order).reshape(int(iota[1]), -1).tolist()
    found = _GROUPS.search(attributes) or _PAIRS.search(attributes)
    listed = [[int(n) for n in group.split(",")] for group in re.findall(r"\{([\d,]+)\}", found[1])] if found else []
    return _joined(listed)


def _joined(groups: list[list[int]]) -> list[list[int]]:
    """Groups that share a member are one, as the pairs of a permutation are."""
    found: list[set[int]] = []
    for group in groups:
        sharing = [other for other in found if other & set(group)]
        found = [other for other in found if other not in sharing] + [set(group).union(*sharing)]
    return [sorted(group) for group in found]


def _clocks(rounds: list[list[Arrival]]) -> dict[str, float]:
    """How far the clock of each process is ahead of the first one's, as the ends of the collectives say."""
    ahead: dict[str, list[float]] = {}
    for together in rounds:
        ends = dict[str, float]()
        for arrival in together:
            ends[arrival.process] = max(arrival.end, ends.get(arrival.process, arrival.end))
        first = min(ends)
        for process, end in ends.items():
            ahead.setdefault(process, []).append(end - ends[first])
    return {process: statistics.median(found) for process, found in ahead.items()}


def _set(together: list[Arrival], clocks: dict[str, float]) -> list[Arrival]:
    """The arrivals by the first process's clock."""
    return [
        each._replace(start=each.start - ahead, begin=each.begin - ahead, end=each.end - ahead)
        for each in together
        for ahead in [clocks[each.process]]
    ]
