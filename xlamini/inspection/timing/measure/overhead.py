"""The time that the profiler takes for itself, taken away from what it measured.

It writes events for each run of a kernel, in a time that is the same for all of them: for a loop over small kernels
that is many times what the kernels take. So each run gives up equal parts of what a call took more, but no more than
nine tenths of the shortest run, and all parts of a call give up the rest in proportion.

Where a call took less, something else held up those without the profiler, as LAPACK's threads do that wait for each
other on busy cores. That may have been in any part, and all of them get more in proportion.
"""
from __future__ import annotations

from collections.abc import Mapping

from xlamini.inspection.xla.facts import MeasuredCall, MeasuredKernel

MUCH = 0.05
"""A call that takes so much more or less under the profiler, as a share, is corrected; a smaller part is noise."""
_LEAST = 0.1
"""The share of its time that the shortest run keeps."""

Kernels = Mapping[str, MeasuredKernel]


def without_overhead(call: MeasuredCall, kernels: Kernels) -> tuple[MeasuredCall, Kernels]:
    """A call and its kernels with times that add up to the call's without the profiler, if that is much else."""
    more, runs = call.traced - call.seconds, sum(kernel.runs for kernel in kernels.values())
    if abs(more) <= MUCH * call.seconds or not runs:
        return call, kernels
    more = max(more, 0.0)
    inside = call.kernels / (call.kernels + call.between)
    shortest = min(kernel.seconds / kernel.runs for kernel in kernels.values() if kernel.runs)
    each = min(inside * more / runs, (1 - _LEAST) * shortest)
    kept = {name: _kept(kernel.seconds, each * kernel.runs) for name, kernel in kernels.items()}
    between = _kept(call.between, (1 - inside) * more)
    found = sum(kept[name] * kernel.seconds for name, kernel in kernels.items())
    scale = call.seconds / (found + between * call.between + call.around)
    made = {name: _scaled(kernel, scale * kept[name]) for name, kernel in kernels.items()}
    parts = {name: sum(getattr(kernel, field) for kernel in made.values()) for name, field in _SUMS.items()}
    factors = {**dict.fromkeys(_BETWEEN, scale * between), **dict.fromkeys(_AROUND, scale)}
    return call._replace(**{name: factor * getattr(call, name) for name, factor in factors.items()}, **parts), made


_SUMS = {"kernels": "seconds", "unseen": "unseen"}
_BETWEEN, _AROUND = ([name, f"{name}_low", f"{name}_high"] for name in ("between", "around"))


def _kept(seconds: float, taken: float) -> float:
    """The share of a time that is kept."""
    return max(1 - taken / seconds, _LEAST) if seconds else 1.0


def _scaled(kernel: MeasuredKernel, factor: float) -> MeasuredKernel:
    first, last = (None if time is None else factor * time for time in (kernel.first, kernel.last))
    names = ("seconds", "low", "high", "unseen")
    return kernel._replace(first=first, last=last, **{name: factor * getattr(kernel, name) for name in names})
