"""Measures the stages of a training step of a library that imports `jax`.

Each stage is measured twice, by the clock and by the processor's time, which other load on the machine changes less.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks.timing import Measurement, Settings

TARGETS = {"trace + lower": 0.35, "first step": 0.5, "steady step": 1.02}


@dataclass(frozen=True)
class Time:
    """Seconds by the clock, and seconds of the processor."""

    clock: float
    processor: float

    def __add__(self, other: Time) -> Time:
        return Time(self.clock + other.clock, self.processor + other.processor)


def spent(call: Callable[[], Any]) -> tuple[Time, Any]:
    """What one call takes, and its result."""
    processor, clock = time.process_time(), time.perf_counter()
    result = call()
    return Time(time.perf_counter() - clock, time.process_time() - processor), result


def spent_per_call(wait: Callable[[Any], Any], call: Callable[[], Any], settings: Settings) -> Time:
    """What one call takes in the fastest batch, including the wait for its result."""
    wait(call())
    once = timeit.timeit(lambda: wait(call()), number=1)
    count = max(1, round(4 * settings.batch_seconds / once))

    def batch() -> None:
        for _ in range(count):
            wait(call())

    batches = [spent(batch)[0] for _ in range(settings.batches)]
    return Time(min(t.clock for t in batches) / count, min(t.processor for t in batches) / count)


def step_stages(
    name: str,
    lower: Callable[[], Any],
    run: Callable[[Any], Any],
    call: Callable[[], Any],
    wait: Callable[[Any], Any],
    settings: Settings,
) -> list[Measurement]:
    """Trace and lower with `lower`, compile, `run` what was compiled; then `call` the same step as users call it."""
    lowering, lowered = spent(lower)
    compiling, compiled = spent(lowered.compile)
    running, _ = spent(lambda: wait(run(compiled)))
    stages = {"trace + lower": lowering, "compile": compiling, "first step": lowering + compiling + running}
    return measurements(name, {**stages, "steady step": spent_per_call(wait, call, settings)})


def measurements(name: str, stages: dict[str, Time]) -> list[Measurement]:
    """Two rows for each stage; the target is that of the clock's."""
    rows = []
    for stage, seconds in stages.items():
        rows.append(Measurement(f"{name}: {stage}", seconds.clock, target=TARGETS.get(stage)))
        rows.append(Measurement(f"{name}: {stage}, processor", seconds.processor))
    return rows
