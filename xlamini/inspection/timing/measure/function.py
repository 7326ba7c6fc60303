"""The measured time of a compiled program: of its calls by the clock, of its kernels by the profiler."""
from __future__ import annotations

import dataclasses
import statistics
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from typing import Any, NamedTuple

from xlamini.core import Values, tree_map
from xlamini.inspection.timing.measure.calls import CALL, profiled_calls
from xlamini.inspection.timing.measure.overhead import MUCH, without_overhead
from xlamini.inspection.timing.measure.shares import CallShares, RunShare, call_shares
from xlamini.inspection.timing.trace.numbers import program_names
from xlamini.inspection.units import shown
from xlamini.inspection.xla.facts import Examined, MeasuredCall, MeasuredKernel
from xlamini.runtime import Array
from xlamini.runtime.arrays.keys import PRNGKeyArray
from xlamini.runtime.profiler.api import TraceAnnotation
from xlamini.runtime.profiler.recording import ProfileOptions
from xlamini.runtime.profiler.session import ProfileSession
from xlamini.staging.run.jit.call_events import calls_heard
from xlamini.transforms.sharding.device_put import block_until_ready

ROUNDS, LEAST_RUNS, LEAST_TRACED_RUNS, MOST_RUNS = 3, 2, 1, 25
SECONDS = 1 / 6
"""Of a round's runs without the profiler, and of those with it."""
RUNS = f"{1 + ROUNDS * (LEAST_RUNS + 1 + LEAST_TRACED_RUNS)} to {1 + ROUNDS * (2 * MOST_RUNS + 1)} times"
"""How often a function is run in all, in words."""


class MeasuredFunction(NamedTuple):
    """A jitted function with its name and arguments, and whether it has effects."""

    name: str
    call: Callable[..., Any]
    args: Values
    kwargs: dict[str, Any]
    has_effects: bool


def measured(found: Examined, function: MeasuredFunction) -> Examined:
    """What XLA says of a program, with the measured times of a jitted function that runs it.

    The function runs once, then half a second by the clock and as long under the profiler, by turns, as what else the
    machine does changes meanwhile. Each run gets copies of the arguments, to take their memory.
    """
    run, calls, sessions = _Runs(function), list[float](), list[ProfileSession]()
    programs = _programs(function.name, run.once)
    for _ in range(ROUNDS):
        calls += run.repeated(LEAST_RUNS, SECONDS)
        sessions.append(_traced(run))
    names = {kernel.name for kernel in found.kernels}
    traced = [call for each in sessions for call in profiled_calls(each.profile_data, programs, names)[1:]]
    ran = f"ran {run.count} times in all{', its effects too' if function.has_effects else ''}"
    return with_times(found, calls, ran, [*map(call_shares, traced)])


def _traced(run: _Runs) -> ProfileSession:
    """A recording of runs; the first one is slower than the others."""
    options = ProfileOptions()
    options.python_tracer_level = 0
    with ProfileSession(profiler_options=options) as session:
        run.once()
        run.repeated(LEAST_TRACED_RUNS, SECONDS)
    return session


def _programs(name: str, call: Callable[[], object]) -> set[str]:
    """The names that a recording has for the programs of a function that is called, which has no segments."""
    heard: list[Any] = []
    with calls_heard(heard.append):
        call()
    executables = [event.program.executable for event in heard if event.name == name]
    return {found for each in executables if each.is_single for found in program_names(each)}


class _Runs:
    """The runs of a function, and how many there were."""

    def __init__(self, function: MeasuredFunction):
        self._call, self._arguments, self.count = function.call, (function.args, function.kwargs), 0

    def repeated(self, least: int, seconds: float) -> list[float]:
        """The seconds of runs: at least so many, or for so long."""
        found: list[float] = []
        while len(found) < least or (sum(found) < seconds and len(found) < MOST_RUNS):
            found.append(self.once())
        return found

    def once(self) -> float:
        """The seconds of a call with copies of the arguments."""
        self.count += 1
        args, kwargs = block_until_ready(tree_map(_copy, self._arguments))
        with TraceAnnotation(CALL):
            start = time.perf_counter()
            block_until_ready(self._call(*args, **kwargs))
            return time.perf_counter() - start


def _copy(x: Any) -> Any:
    return x.copy() if isinstance(x, Array | PRNGKeyArray) else x


def with_times(found: Examined, calls: Sequence[float], ran: str, traced: Sequence[CallShares]) -> Examined:
    """What XLA says of a program, with the times of its calls and of its kernels; `ran` says how often it ran."""
    typical = _nearest(traced, statistics.median(calls))
    call, kernels = without_overhead(_call_time(calls, traced, typical), _kernel_times(traced, typical))
    timed = tuple(kernel._replace(measured=kernels.get(kernel.name)) for kernel in found.kernels)
    return dataclasses.replace(found, kernels=timed, measured=call._replace(source=_words(call, ran)))


def _call_time(calls: Sequence[float], traced: Sequence[CallShares], some: Sequence[CallShares]) -> MeasuredCall:
    """The time of the calls, and its parts on the average of some traced ones; their spread is that of all."""
    low, high = _quartiles(calls)
    return MeasuredCall(
        statistics.median(calls), low, high, len(calls),
        _mean(call.seconds for call in some), _mean(sum(run.seconds for run in call.runs) for call in some),
        _mean(sum(run.unseen for run in call.runs) for call in some),
        _mean(call.between for call in some), *_quartiles([call.between for call in traced]),
        _mean(call.around for call in some), *_quartiles([call.around for call in traced]),
        max((call.threads for call in some), default=0), "",
    )  # fmt: skip


def _words(found: MeasuredCall, ran: str) -> str:
    """What was measured, and whether its parts add up to it."""
    low, high, traced, kernels, unseen, between, around = (
        shown(seconds, "seconds")
        for seconds in (found.low, found.high, found.traced, found.kernels, found.unseen, found.between, found.around)
    )
    calls = f"the median of {found.count} calls, half of which took {low} to {high}; it {ran}"
    if not found.kernels:
        return f"{calls}. The profiler saw no run of its kernels."
    pool = f" (of which {unseen} in threads of a pool, which record nothing)" if found.unseen else ""
    more = found.traced / found.seconds - 1
    beside = f" ({more:+.0%})" if abs(more) > MUCH else ""
    threads = "1 thread" if found.threads == 1 else f"{found.threads} threads"
    corrected = ", and its parts are scaled to one without" if abs(more) > MUCH else ""
    return (
        f"{calls}. {kernels} were in kernels{pool}, on {threads}, {between} between them, and {around} "
        f"before the first and after the last. Under the profiler a call took {traced}{beside}{corrected}."
    )


def _kernel_times(traced: Sequence[CallShares], some: Sequence[CallShares]) -> dict[str, MeasuredKernel]:
    """The times of the kernels that ran in some calls, by name; their spread is that of all traced calls."""
    by_call, typical = [*map(_by_kernel, traced)], [*map(_by_kernel, some)]
    return {name: _kernel_time(name, by_call, typical) for name in dict.fromkeys(chain(*typical))}


Runs = Mapping[str, Sequence[RunShare]]


def _by_kernel(call: CallShares) -> Runs:
    found: dict[str, list[RunShare]] = {}
    for run in call.runs:
        found.setdefault(run.run.kernel, []).append(run)
    return found


def _kernel_time(name: str, calls: Sequence[Runs], typical: Sequence[Runs]) -> MeasuredKernel:
    """The time of a kernel in a call: its spread in all calls, the rest on the average of typical ones."""
    low, high = _quartiles([sum(run.seconds for run in call.get(name, ())) for call in calls])
    iterations = [_iterations(call.get(name, ())) for call in typical]
    runs = max(map(len, iterations))
    first, last = (_mean(each[i] for each in iterations if each) if runs > 1 else None for i in (0, -1))
    unseen = _mean(sum(run.unseen for run in call.get(name, ())) for call in typical)
    return MeasuredKernel(_mean(map(sum, iterations)), low, high, unseen, runs, first, last)


def _iterations(runs: Sequence[RunShare]) -> list[float]:
    """The seconds of each run of a loop's kernel, those of all devices together."""
    by_device: dict[str, list[float]] = {}
    for run in runs:
        by_device.setdefault(run.run.device, []).append(run.seconds)
    return list(map(sum, zip_longest(*by_device.values(), fillvalue=0.0)))


def _quartiles(numbers: Sequence[float]) -> tuple[float, float]:
    """Half of the numbers lie from the first to the second; both are 0 without any."""
    if len(numbers) < 2:
        return _mean(numbers), _mean(numbers)
    low, _, high = statistics.quantiles(numbers, n=4, method="inclusive")
    return low, high


def _nearest(traced: Sequence[CallShares], seconds: float) -> list[CallShares]:
    """The half of the calls that took about as long as a call without the profiler."""
    ordered = sorted(traced, key=lambda call: abs(call.seconds - seconds))
    return ordered[: (len(ordered) + 1) // 2]


def _mean(numbers: Iterable[float]) -> float:
    found = list(numbers)
    return sum(found) / len(found) if found else 0.0
