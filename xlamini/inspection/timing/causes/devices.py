"""Causes that show between devices: work that one has more of, or all of, and work that each of them repeats."""
from __future__ import annotations

import os
import statistics
from collections.abc import Iterator

from xlamini.inspection.timing.causes.finding import TimeFinding
from xlamini.inspection.timing.causes.parts import is_on_cpu, parts, seconds_of
from xlamini.inspection.timing.trace.trace import EAGER, TimedKernel, Trace
from xlamini.inspection.units import shown
from xlamini.runtime.hlo.collectives import COLLECTIVES

_LONGER = 1.5
"""A device that works half as long again as the others is not as fast, or has more to do; less is chance."""
_MORE_DEVICES = 2
_LEAST_CALL = 100e-6
"""To start a program on several devices takes about as many seconds, so that a shorter kernel is not worth it."""
_NEARLY_ALL = 0.95
"""The share of the work from which on one device has it by itself; others may still have been given an array."""


def slow_device(trace: Trace) -> Iterator[TimeFinding]:
    """One device works longer than the others, which wait for it in a collective or at the end of the step."""
    by_program: dict[str, list[TimedKernel]] = {}
    for kernel in trace.kernels:
        if not _is_collective(kernel) and _is_of_several(kernel):
            by_program.setdefault(kernel.program, []).append(kernel)
    for kernels in by_program.values():
        yield from _slowest(kernels)


def _slowest(kernels: list[TimedKernel]) -> Iterator[TimeFinding]:
    busy = _busy(kernels)
    slow = max(busy, key=lambda device: busy[device])
    others = statistics.median(seconds for device, seconds in busy.items() if device != slow) if len(busy) > 1 else 0.0
    if others and busy[slow] > _LONGER * others:
        line = max(kernels, key=lambda k: _excess(k, slow)).place
        held_up = sum(kernel.seconds for kernel in kernels) / sum(busy.values())  # by other programs of the machine
        yield TimeFinding((busy[slow] - others) * held_up, (
            f"{slow} computes {shown(busy[slow], 'seconds')}, the others {shown(others, 'seconds')}, and wait for it; "
            f"the most of it is at {line}: give all devices as much to do"
        ), line)  # fmt: skip


def _busy(kernels: list[TimedKernel]) -> dict[str, float]:
    """The seconds that each device has to do."""
    found: dict[str, float] = {}
    for kernel in kernels:
        for device, seconds in kernel.devices.items():
            found[device] = found.get(device, 0.0) + seconds
    return found


def _excess(kernel: TimedKernel, device: str) -> float:
    """How much longer a kernel takes on a device than on the others."""
    others = [seconds for name, seconds in kernel.devices.items() if name != device]
    return kernel.devices.get(device, 0.0) - (statistics.median(others) if others else 0.0)


def _is_collective(kernel: TimedKernel) -> bool:
    names = [kernel.name, *(part.each.opcode for part in parts(kernel))]
    return any(name.startswith(COLLECTIVES) for name in names)


def idle_devices(trace: Trace) -> Iterator[TimeFinding]:
    """The process has several devices, and one of them does all the work. A trace from files does not say how many."""
    known, busy = [kernel for kernel in trace.kernels if _is_worth_splitting(kernel)], _busy(trace.kernels)
    count = max((kernel.of.choices for kernel in known if kernel.of), default=0)
    if count < _MORE_DEVICES or max(busy.values()) < _NEARLY_ALL * sum(busy.values()):
        return
    line, seconds = max(known, key=seconds_of).place, sum(map(seconds_of, known))
    faster = min(count, os.cpu_count() or 1) if is_on_cpu(known[0]) else count  # a CPU's devices share its cores
    yield TimeFinding(seconds * (1 - 1 / faster), (
        f"{max(busy, key=lambda device: busy[device])} of {count} does all the work, the most of it at {line}; split "
        f"the batch: jax.device_put(batch, NamedSharding(mesh, P('batch'))) with mesh = jax.make_mesh(({count},), "
        "('batch',))"
    ), line)  # fmt: skip


def _is_worth_splitting(kernel: TimedKernel) -> bool:
    """Whether a kernel of a line takes long enough in each call; the first call is slower for other reasons."""
    is_of_line = kernel.of is not None and kernel.place not in ("", EAGER)
    return is_of_line and len(kernel.calls) > 1 and seconds_of(kernel) > _LEAST_CALL * len(kernel.calls)


def copied_work(trace: Trace) -> Iterator[TimeFinding]:
    """Each of several devices computes the same, as no argument is split over them."""
    by_program: dict[int, list[TimedKernel]] = {}
    for kernel in trace.kernels:
        if len(kernel.devices) >= _MORE_DEVICES and _is_whole(kernel):
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
    return bool(shardings) and all(sharding.is_fully_replicated for sharding in shardings) and _is_of_several(kernel)


def _is_of_several(kernel: TimedKernel) -> bool:
    """Whether a call runs on several devices, and not one call on each; a trace from files does not say."""
    shardings = kernel.of.in_shardings if kernel.of is not None else ()
    return not shardings or any(len(sharding.device_set) > 1 for sharding in shardings)
