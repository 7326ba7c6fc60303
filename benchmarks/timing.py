"""Measures one number inside one process.

Short calls are repeated until a batch lasts long enough for the clock. Several batches are run, and
the fastest one counts, because other load on the machine can only make a batch slower. Calls that
can happen only once (a first trace, an import) are timed directly.
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
    """The length of a run: `quick` takes fewer and shorter batches."""

    quick: bool = False

    @property
    def batch_seconds(self) -> float:
        """The minimum duration of one batch of calls."""
        return 0.002 if self.quick else 0.01

    @property
    def batches(self) -> int:
        """The number of batches; the fastest counts."""
        return 3 if self.quick else 9


@dataclass(frozen=True)
class Measurement:
    """One measured number: its name, its value or its error, and the target for the ratio."""

    what: str
    value: float | None
    unit: str = SECONDS
    target: float | None = None
    error: str | None = None


def once(call: Callable[[], Any]) -> tuple[float, Any]:
    """Return the duration of one call in seconds, and its result."""
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def per_call(jax: ModuleType, call: Callable[[], Any], settings: Settings) -> float:
    """Return the seconds per call in the fastest batch, including the wait for the last result."""

    def run(count: int) -> float:
        def batch() -> None:
            result = None
            for _ in range(count):
                result = call()
            jax.block_until_ready(result)

        return timeit.timeit(batch, number=1)

    count = _count_that_lasts(run, settings.batch_seconds)
    return min(run(count) for _ in range(settings.batches)) / count


def each_per_call(
    jax: ModuleType,
    calls: Iterable[tuple[str, Callable[[], Any]]],
    settings: Settings,
    target: float | None = None,
) -> list[Measurement]:
    """Measure every (what, call); a call that raises gives an error, and the others still run."""
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


def _count_that_lasts(run: Callable[[int], float], seconds: float) -> int:
    run(1)  # the first call compiles
    count = 1
    while (elapsed := run(count)) < seconds:
        count *= max(2, min(10, round(seconds / max(elapsed, 1e-9))))
    return count
