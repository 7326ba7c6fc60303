"""A model of the run time of a kernel: a TPU's bundles and copies, and for a GPU a bound that is weak."""
from __future__ import annotations

import math
from typing import NamedTuple

from xlamini.runtime.kernels.bundles import TpuCode
from xlamini.runtime.kernels.ptx import GpuCode
from xlamini.runtime.targets.topology import Target
from xlamini.staging.aot.kernel_costs import KernelCost

_CACHE = 2.0
"""How much faster than its memory the cache of a GPU is, about."""
_SHARED, _REGISTERS, _THREADS, _PROGRAMS = 227 * 1024, 65536, 2048, 32
"""What one of a GPU's multiprocessors has, about: shared memory, registers, threads and programs at a time."""
_MULTIPROCESSORS = 132


class KernelTime(NamedTuple):
    """The modelled time of one call of a kernel in seconds.

    It ranks sizes of blocks. On a TPU it counts bundles, one a cycle, with every branch taken, and copies at full
    bandwidth, at the same time as the bundles; it does not know how long a bundle waits. On a GPU it is a bound from
    peaks, from the bytes that programs ask of the cache, and from how many programs run at once.
    """

    seconds: float
    limit: str
    """What takes this time: "bundles", "copies", "operations", "memory", "cache"."""
    parts: dict[str, float]
    """The seconds of each."""


def kernel_time(code: TpuCode | GpuCode, cost: KernelCost | None, target: Target) -> KernelTime | None:
    """The modelled time; `cost` is None for a kernel that no `pallas_call` made, whose bytes are not known."""
    if isinstance(code, TpuCode):
        return _longest(_on_tpu(code, cost, target))
    return None if cost is None else _longest(_on_gpu(code, cost, target))


def _longest(parts: dict[str, float]) -> KernelTime:
    limit = max(parts, key=lambda name: parts[name])
    return KernelTime(parts[limit], limit, parts)


def _on_tpu(code: TpuCode, cost: KernelCost | None, target: Target) -> dict[str, float]:
    parts = {"bundles": code.cycles / (target.clock or 1e9)}
    return parts if cost is None else {**parts, "copies": cost.moved / target.bandwidth}


def _on_gpu(code: GpuCode, cost: KernelCost, target: Target) -> dict[str, float]:
    peak = max((target.peaks[d] for d in cost.dtypes if d in target.peaks), default=target.peaks["float32"])
    waves = cost.programs / (_MULTIPROCESSORS * _programs_at_once(code))
    idle = math.ceil(waves) / waves
    parts = {"operations": cost.flops / peak, "memory": cost.arrays / target.bandwidth}
    parts["cache"] = (cost.asked + cost.programs * _spilled(code)) / (_CACHE * target.bandwidth)
    return {name: seconds * idle for name, seconds in parts.items()}


def _programs_at_once(code: GpuCode) -> int:
    """The programs that one multiprocessor runs at a time."""
    threads = code.threads or 128
    fits = [_PROGRAMS, _THREADS // threads]
    if code.shared:
        fits.append(_SHARED // code.shared)
    if code.registers:
        fits.append(_REGISTERS // (code.registers.count * threads))
    return max(min(fits), 1)


def _spilled(code: GpuCode) -> int:
    return (code.spills or 0) * (code.threads or 128)
