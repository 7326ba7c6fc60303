"""The measured time of a compiled program: of its calls by the clock, of its kernels by the profiler."""
from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from xlamini.core import Values, tree_map
from xlamini.inspection.timing.events import KernelRun, kernel_runs, time_covered
from xlamini.inspection.units import shown
from xlamini.inspection.xla.facts import Examined, XlaKernel
from xlamini.runtime import Array
from xlamini.runtime.arrays.keys import PRNGKeyArray
from xlamini.runtime.profiler.recording import ProfileOptions
from xlamini.runtime.profiler.session import ProfileSession
from xlamini.transforms.sharding.device_put import block_until_ready

MEASURED = "measured"
LEAST_RUNS, LEAST_SECONDS, MOST_RUNS = 5, 0.5, 100
TRACED_RUNS = 5
_UNSEEN = 0.1
"""A kernel that took less than this share of its bound ran on threads that the profiler does not see."""


class Measurement(NamedTuple):
    """The seconds of each call, and those of each kernel in a call on the average, by its name.

    `covered` are the seconds of a call in which at least one kernel ran.
    """

    calls: list[float]
    kernels: dict[str, float]
    covered: float

    @property
    def seconds(self) -> float:
        """The median of the calls."""
        return statistics.median(self.calls)

    def __str__(self) -> str:
        low, high = (shown(f(self.calls), "seconds") for f in (min, max))
        share = min(self.covered / self.seconds, 1.0)
        return f"measured: the median of {len(self.calls)} calls of {low} to {high}; kernels cover {share:.0%} of it"


def measure(call: Callable[..., Any], names: Collection[str], args: Values, kwargs: dict[str, Any]) -> Measurement:
    """Run a jitted function: once before it is timed, then five times or for half a second, then five times traced.

    Each run gets copies of the arguments, which it may take the memory of. `names` are those of the kernels of its
    program, by which this is told from the programs that copy.
    """
    _seconds(call, args, kwargs)
    calls: list[float] = []
    while len(calls) < LEAST_RUNS or (sum(calls) < LEAST_SECONDS and len(calls) < MOST_RUNS):
        calls.append(_seconds(call, args, kwargs))
    options = ProfileOptions()
    options.python_tracer_level = 0
    with ProfileSession(profiler_options=options) as session:
        for _ in range(TRACED_RUNS):
            _seconds(call, args, kwargs)
    runs = _runs_of(names, kernel_runs(session.profile_data))
    kernels: dict[str, float] = {}
    for run in runs:
        kernels[run.kernel] = kernels.get(run.kernel, 0.0) + run.seconds / TRACED_RUNS
    return Measurement(calls, kernels, time_covered(runs) / TRACED_RUNS)


def _runs_of(names: Collection[str], runs: list[KernelRun]) -> list[KernelRun]:
    """The runs of the program that has most of these kernels. Its name is another's if it was loaded from the disk."""
    programs: dict[tuple[str, str], list[KernelRun]] = {}
    for run in runs:
        programs.setdefault((run.module, run.program), []).append(run)
    return max(programs.values(), key=lambda some: len({run.kernel for run in some} & set(names)), default=[])


def with_times(found: Examined, measured: Measurement) -> Examined:
    """What XLA says of a program, with measured times in place of predicted ones."""
    kernels = tuple(_timed(kernel, measured.kernels) for kernel in found.kernels)
    return dataclasses.replace(found, kernels=kernels, prediction=(measured.seconds, str(measured)))


def _timed(kernel: XlaKernel, seconds: Mapping[str, float]) -> XlaKernel:
    """The kernel with its time; as it is, if the profiler saw no run of it, or its beginning alone."""
    found = seconds.get(kernel.name)
    if found is None or (kernel.seconds is not None and found < _UNSEEN * kernel.seconds):
        return kernel
    return kernel._replace(seconds=found, time=MEASURED)


def _seconds(call: Callable[..., Any], args: Values, kwargs: dict[str, Any]) -> float:
    """The seconds of a call with copies of the arguments."""
    own_args, own_kwargs = block_until_ready(tree_map(_copy, (args, kwargs)))
    start = time.perf_counter()
    block_until_ready(call(*own_args, **own_kwargs))
    return time.perf_counter() - start


def _copy(x: Any) -> Any:
    return x.copy() if isinstance(x, Array | PRNGKeyArray) else x
