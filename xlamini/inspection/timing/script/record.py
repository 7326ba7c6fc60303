"""What was recorded of a script, for the causes and the text of its report."""
from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from xlamini.inspection.timing.report import TimeReport
from xlamini.inspection.timing.script.samples import LIBRARY, PYTHON, FrameSample
from xlamini.inspection.timing.script.transfers import Transfers
from xlamini.inspection.timing.script.waits import HostWaits
from xlamini.inspection.timing.table import TimeTable
from xlamini.inspection.timing.trace.spans import Spans, device_calls
from xlamini.staging.compile.ledger import Compilation, Compilations

CALLS = "calls"
"""What a thread does that calls a jitted function of the user's, which begins its program."""
_PHASES = {"tracing": ("trace", "rewrite"), "lowering": ("lower",), "compiling": ("compile", "load")}


@dataclass
class ScriptRecord:
    """The wall time of a script, what its host did meanwhile, and the report of its kernels.

    `began` is when kernels began to be recorded, on the clock of the samples; `programs` are the jaxprs of large
    programs with their entries in the ledger.
    """

    wall: float
    compiled: Compilations
    waits: HostWaits
    transfers: Transfers
    sampled: list[FrameSample]
    report: TimeReport
    began: float
    programs: list[tuple[Compilation, Any]]

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

    @cached_property
    def device(self) -> Spans:
        """When programs ran on a device, in seconds from the beginning of its recording."""
        return device_calls(self.report.trace.runs)

    @cached_property
    def samples(self) -> list[FrameSample]:
        """The samples of the thread that ran the script; those in calls of jitted functions say so."""
        calls = Spans(self.calls)
        mine = [sample for sample in self.sampled if sample.is_main]
        return [
            sample._replace(does=CALLS) if sample.does in (PYTHON, LIBRARY) and self.traced(sample) in calls else sample
            for sample in mine
        ]

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
        rest = "calls, in which a CPU may compute, and the rest of the library"
        return {**known, rest: max(self.wall - sum(known.values()), 0.0)}

    @property
    def is_beside(self) -> bool:
        """Whether threads of the host did things at a time, so that these add up to more than the wall time."""
        return sum(self.host.values()) > self.wall * 1.01

    @property
    def on_device(self) -> dict[str, float]:
        """The wall time by what the device did meanwhile."""
        return {"a program ran on the device": self.device.seconds, "no program ran": self.idle}

    @property
    def idle(self) -> float:
        """The seconds in which no program ran on a device."""
        return max(self.wall - self.device.seconds, 0.0)
