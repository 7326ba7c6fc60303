"""The peaks of a device: from the data sheet of a target, measured for this machine's CPU."""
from __future__ import annotations

import functools
import os
import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from xlamini.inspection.xla.examined import Roof

if TYPE_CHECKING:
    from xlamini.runtime.targets.topology import Target

_DTYPE = re.compile(r"\b(bf16|f16|f32|f64|s8|f8e4m3fn|f8e5m2)\[")
_NAMES = {
    "bf16": "bfloat16",
    "f16": "float16",
    "f32": "float32",
    "f64": "float64",
    "s8": "int8",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
}
_SIDE, _WORDS, _SECONDS, _FEWEST = 64, 2**22, 0.02, 6


def roof_of(target: Target, text: str) -> Roof:
    """The peaks of a target, for the fastest dtype in an HLO text; for a dtype without a peak, the lowest one known."""
    dtypes = {_NAMES[short] for short in set(_DTYPE.findall(text))} & target.peaks.keys()
    peak = target.peaks.__getitem__
    dtype = max(dtypes, key=peak) if dtypes else min(target.peaks, key=peak)
    source = f"data sheet of a {target.device_kind}: its peak for {dtype}, and its memory's bandwidth"
    return Roof(target.peaks[dtype], target.bandwidth, source)


@functools.cache
def roof_of_this_cpu() -> Roof:
    """The peaks of this machine's CPU, measured once in a process, in 40 ms, with NumPy.

    The product is so small that one thread computes it: with several, what else the machine does would show.
    """
    a, b = np.ones((_SIDE, _SIDE), np.float32), np.ones((_SIDE, _SIDE), np.float32)
    product = np.empty_like(a)
    source, copy = np.ones(_WORDS, np.float32), np.zeros(_WORDS, np.float32)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    flops = cores * 2 * _SIDE**3 / _fastest(lambda: np.matmul(a, b, out=product))
    bandwidth = 2 * source.nbytes / _fastest(lambda: np.copyto(copy, source))
    runs = f"a float32 product of {_SIDE}x{_SIDE} on one of {cores} cores, and a copy of {source.nbytes >> 20} MiB"
    return Roof(flops, bandwidth, f"measured on this CPU with NumPy: {runs}")


def _fastest(run: Callable[[], object]) -> float:
    """The seconds of the fastest run, of as many as take 20 ms: other programs may take the CPU meanwhile."""
    found, begin = list[float](), time.perf_counter()
    while (start := time.perf_counter()) - begin < _SECONDS or len(found) < _FEWEST:
        run()
        found.append(time.perf_counter() - start)
    return max(min(found), 1e-9)
