"""Timing of calls inside one process.

Short calls are repeated until a batch is long enough for the clock; several batches are run, and
the fastest one counts, because noise can only make a batch slower. Calls that
can happen only once (a first trace, an import) are timed once.
"""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

SECONDS = "s"
PER_SECOND = "/s"
BYTES = "B"


@dataclass(frozen=True)
class Settings:
    """Settings of a run: `quick` takes fewer and shorter batches."""

    quick: bool = False

    @property
    def batch_seconds(self) -> float:
        """The minimum duration of a batch of calls."""
        return 0.002 if self.quick else 0.01

    @property
    def batches(self) -> int:
        """The number of batches; the fastest counts."""
        return 3 if self.quick else 9


@dataclass(frozen=True)
class Measurement:
    """One measurement: its name, its value or error, and the target ratio."""

    what: str
    value: float | None
    unit: str = SECONDS
    target: float | None = None
    error: str | None = None


def once(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the seconds that one call took, and its result."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def per_call(jax: ModuleType, call: Callable[[], Any], settings: Settings) -> float:
    """Return the seconds a call takes in the fastest batch, waiting for its last result."""

    def run(count: int) -> float:
        def batch() -> None:
            result = None
            for _ in range(count):
                result = call()
            jax.block_until_ready(result)

        return timeit.timeit(batch, number=1)

    count = _batch_count(run, settings.batch_seconds)
    return min(run(count) for _ in range(settings.batches)) / count


def each_per_call(
    jax: ModuleType,
    calls: Iterable[tuple[str, Callable[[], Any]]],
    settings: Settings,
    target: float | None = None,
) -> list[Measurement]:
    """Measure every (what, call); a call that raises yields an error row and does not affect the others."""
    return [_attempt(jax, what, call, settings, target) for what, call in calls]


def _attempt(
    jax: ModuleType,
    what: str,
    call: Callable[[], Any],
    settings: Settings,
    target: float | None,
) -> Measurement:
    try:
        return Measurement(what, per_call(jax, call, settings), target=target)
    except Exception as error:
        message = f"{type(error).__name__}: {error}".splitlines()[0]
        return Measurement(what, None, target=target, error=message)


def _batch_count(run: Callable[[int], float], seconds: float) -> int:
    run(1)  # the first call compiles
    count = 1
    while (elapsed := run(count)) < seconds:
        count *= max(2, min(10, round(seconds / max(elapsed, 1e-9))))
    return count
