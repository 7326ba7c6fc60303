"""What was recorded of a script, for the causes and the text of its report."""
from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

from xlamini.core.errors.frames import own_files
from xlamini.inspection.timing.report import TimeReport
from xlamini.inspection.timing.script.samples import COMPILING, LIBRARY, PYTHON, FrameSample, by_line
from xlamini.inspection.timing.script.spans import LineSpan, python_spans
from xlamini.inspection.timing.script.transfers import Transfers
from xlamini.inspection.timing.script.waits import END, HostWaits, LineWait
from xlamini.inspection.timing.table import TimeTable
from xlamini.inspection.timing.trace.host import HostActivity, place
from xlamini.inspection.timing.trace.spans import Spans
from xlamini.staging.compile.ledger import Compilation, Compilations, Function

CALLS = "calls"
"""What a thread does that calls a jitted function of the user's, which begins its program."""
_MAY_CALL = PYTHON, LIBRARY
_CALLS = "calls, in which a CPU may compute, and the rest of the library"
_PHASES = {"tracing": ("trace", "rewrite"), "lowering": ("lower",), "compiling": ("compile", "load")}


@dataclass
class ScriptRecord:
    """The wall time of a script, what its host did meanwhile, and the report of its kernels.

    `is_whole` says whether kernels were recorded to the end. `began` is when that began, on the clock of the samples;
    `programs` are the jaxprs of large programs with their entries in the ledger. `cpu` are the seconds for which the
    process had the CPU.
    """

    wall: float
    compiled: Compilations
    waits: HostWaits
    transfers: Transfers
    sampled: list[FrameSample]
    report: TimeReport
    is_whole: bool
    began: float
    programs: list[tuple[Compilation, Any]]
    cpu: float

    @cached_property
    def lines(self) -> TimeTable:
        """The kernels by line."""
        return self.report.table()

    @cached_property
    def calls(self) -> list[tuple[float, float]]:
        """When calls of the user's jitted functions began and ended, in seconds from the beginning of the recording."""
        own = self.report.trace.of_library
        found = (each for each in self.report.trace.host if each.function)
        return [(call.start * 1e-9, call.end * 1e-9) for call in found if f"jit_{call.function}" not in own]

    def rounds(self, wait: LineWait) -> int:
        """After how many calls a line has waited: reads of what has been computed before are one round."""
        return len(self._rounds.get(wait.line, ())) if self._rounds else wait.count

    @cached_property
    def _rounds(self) -> dict[str, set[int]]:
        """By line, after how many calls each of its waits was; none if there is no call."""
        calls = [each.start * 1e-9 + self.began for each in self.report.trace.host if each.function]
        found: dict[str, set[int]] = {}
        for span in self.waits.spans if calls else ():
            found.setdefault(span.line, set()).add(bisect_right(calls, span.start))
        return found

    @cached_property
    def activities(self) -> list[HostActivity]:
        """What the host did by line, on the clock of the recording."""
        lanes = {"Python": python_spans(self.python), "waits": self.waits.spans, "transfers": self.transfers.spans}
        return [self._activity(span, lane) for lane, spans in lanes.items() for span in spans]

    def _activity(self, span: LineSpan, lane: str) -> HostActivity:
        start, end = ((when - self.began) * 1e9 for when in (span.start, span.end))
        return HostActivity(span.what, "", start, end, lane, place(span.line), span.bytes)

    @cached_property
    def device(self) -> Spans:
        """When programs ran on a device, in seconds from the beginning of its recording."""
        return self.report.trace.running

    @cached_property
    def samples(self) -> list[FrameSample]:
        """The samples of the thread that ran the script; those in calls of jitted functions say so.

        After the recording nobody knows which these are, and a sample is divided as those of its line were before.
        """
        mine, calls = [sample for sample in self.sampled if sample.is_main], Spans(self.calls)
        seen = [
            sample._replace(does=CALLS) if sample.does in _MAY_CALL and self.traced(sample) in calls else sample
            for sample in mine
            if self.is_watched(sample)
        ]
        shares = _shares_of_calls(seen)
        later = (_divided(s, shares.get(s.line, 0.0)) for s in mine if not self.is_watched(s))
        return [*seen, *chain.from_iterable(later)]

    @property
    def compiling(self) -> float:
        """The seconds of the CPU in which some thread compiled; other programs of the machine do not make it more."""
        return sum({sample.when: sample.cpu for sample in self.sampled if sample.does == COMPILING}.values())

    def traced(self, sample: FrameSample) -> float:
        """When a sample was taken, in seconds from the beginning of the recording."""
        return sample.when - self.began

    @cached_property
    def python(self) -> list[FrameSample]:
        """The samples of the user's own Python."""
        return [sample for sample in self.samples if sample.does == PYTHON]

    @property
    def host(self) -> dict[str, float]:
        """The wall time by what the host did."""
        seconds = self.compiled.seconds
        known = {"Python of the script": sum(sample.seconds for sample in self.python)}
        known |= {name: sum(seconds.get(phase, 0.0) for phase in phases) for name, phases in _PHASES.items()}
        known |= {"transfers to the device": self.transfers.seconds, "waiting for the device": self.waits.seconds}
        rest = max(self.wall - sum(known.values()), 0.0)
        outside = min(self._outside, rest)
        return {**known, _CALLS: rest - outside, "no line of the script, as it begins and ends": outside}

    @property
    def _outside(self) -> float:
        """The seconds in which its thread was at no line of the script, but for the wait at its end."""
        ending = sum(wait.seconds for wait in self.waits.lines() if wait.line == END)
        return max(self.wall - sum(sample.seconds for sample in self.samples) - ending, 0.0)

    @property
    def is_beside(self) -> bool:
        """Whether threads of the host did things at a time, so that these add up to more than the wall time."""
        return sum(self.host.values()) > self.wall * 1.01

    @property
    def on_device(self) -> dict[str, float]:
        """The wall time by what the device did meanwhile."""
        idle = max(self.watched - self.device.seconds, 0.0)
        known = {"a program ran on the device": self.device.seconds, "no program ran": idle}
        return known if self.is_whole else {**known, "the device was not recorded": self.wall - self.watched}

    @property
    def watched(self) -> float:
        """The wall time without that in which kernels were not recorded."""
        return self.wall if self.is_whole else min(self.report.trace.recorded, self.wall)

    def is_watched(self, sample: FrameSample) -> bool:
        """Whether a sample was taken before the end of the recording."""
        return self.is_whole or self.traced(sample) < self.report.trace.recorded


def _shares_of_calls(samples: Sequence[FrameSample]) -> dict[str, float]:
    """For each line the share of its samples that are in calls."""
    calls = {each.line: each.seconds for each in by_line(s for s in samples if s.does == CALLS)}
    both = by_line(s for s in samples if s.does in (CALLS, *_MAY_CALL) and s.line in calls)
    return {each.line: calls[each.line] / each.seconds for each in both}


def _divided(sample: FrameSample, share: float) -> list[FrameSample]:
    """A sample in two, of which the second has this share and is in a call; itself if it cannot be."""
    if sample.does not in _MAY_CALL or not share:
        return [sample]
    own, call = sample.seconds * (1 - share), sample.seconds * share
    return [sample._replace(seconds=own), sample._replace(seconds=call, does=CALLS)]


def known_as(function: Function, entry: Compilation) -> tuple[str, str]:
    """The name and line by which the user knows a function: of the library's own, the line that called it."""
    if own_files[function.file]:
        return f"{function.name} ({place(entry.where)})", place(entry.where)
    return str(function), f"{function.file}:{function.line}"
