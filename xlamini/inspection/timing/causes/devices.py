"""Causes that show between devices: one that has more to do than the others, and work that each of them repeats."""
from __future__ import annotations

import statistics
from collections.abc import Iterator

from xlamini.inspection.timing.causes.finding import TimeFinding
from xlamini.inspection.timing.causes.parts import parts, seconds_of
from xlamini.inspection.timing.trace.trace import TimedKernel, Trace
from xlamini.inspection.units import shown
from xlamini.runtime.hlo.collectives import COLLECTIVES

_LONGER = 1.5
"""A device that works half as long again as the others is not as fast, or has more to do; less is chance."""
_MORE_DEVICES = 2


def slow_device(trace: Trace) -> Iterator[TimeFinding]:
    """One device works longer than the others, which wait for it in a collective or at the end of the step."""
    by_program: dict[str, list[TimedKernel]] = {}
    for kernel in trace.kernels:
        if not _is_collective(kernel):
            by_program.setdefault(kernel.program, []).append(kernel)
    for kernels in by_program.values():
        yield from _slowest(kernels)


def _slowest(kernels: list[TimedKernel]) -> Iterator[TimeFinding]:
    busy: dict[str, float] = {}
    for kernel in kernels:
        for device, seconds in kernel.devices.items():
            busy[device] = busy.get(device, 0.0) + seconds
    slow = max(busy, key=lambda device: busy[device])
    others = statistics.median(seconds for device, seconds in busy.items() if device != slow) if len(busy) > 1 else 0.0
    if others and busy[slow] > _LONGER * others:
        line = max(kernels, key=lambda k: _excess(k, slow)).place
        held_up = sum(kernel.seconds for kernel in kernels) / sum(busy.values())  # by other programs of the machine
        yield TimeFinding((busy[slow] - others) * held_up, (
            f"{slow} computes {shown(busy[slow], 'seconds')}, the others {shown(others, 'seconds')}, and wait for it; "
            f"the most of it is at {line}: give all devices as much to do"
        ), line)  # fmt: skip


def _excess(kernel: TimedKernel, device: str) -> float:
    """How much longer a kernel takes on a device than on the others."""
    others = [seconds for name, seconds in kernel.devices.items() if name != device]
    return kernel.devices.get(device, 0.0) - (statistics.median(others) if others else 0.0)


def _is_collective(kernel: TimedKernel) -> bool:
    names = [kernel.name, *(part.each.opcode for part in parts(kernel))]
    return any(name.startswith(COLLECTIVES) for name in names)


def copied_work(trace: Trace) -> Iterator[TimeFinding]:
    """Each of several devices computes the same, as no argument is split over them."""
    by_program: dict[int, list[TimedKernel]] = {}
    for kernel in trace.kernels:
        if kernel.of is not None and len(kernel.devices) >= _MORE_DEVICES and _is_whole(kernel):
            by_program.setdefault(id(kernel.of), []).append(kernel)
    for kernels in by_program.values():
        slowest, count = max(kernels, key=seconds_of), len(kernels[0].devices)
        name, seconds = slowest.module.removeprefix("jit_"), sum(map(seconds_of, kernels))
        yield TimeFinding(seconds * (1 - 1 / count), (
            f"each of {count} devices computes all of {name} ({slowest.place}), as no argument is split; split the "
            "batch: jax.device_put(batch, NamedSharding(mesh, P('batch')))"
        ), slowest.place)  # fmt: skip


def _is_whole(kernel: TimedKernel) -> bool:
    shardings = kernel.of.in_shardings if kernel.of is not None else ()
    return bool(shardings) and all(sharding.is_fully_replicated for sharding in shardings)
