"""Pages of `inspect` beside the page of a profile, with the times of its trace, for the programs that took longest."""
from __future__ import annotations

import dataclasses
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from xlamini.core.errors.frames import own_files
from xlamini.inspection.build import build_program_report
from xlamini.inspection.report import Report
from xlamini.inspection.timing.measure.calls import CallEvents, recorded_calls
from xlamini.inspection.timing.measure.function import with_times
from xlamini.inspection.timing.measure.shares import call_shares
from xlamini.inspection.timing.page.snippets import functions_of_programs
from xlamini.inspection.timing.table import time_table
from xlamini.inspection.timing.trace.programs import TracedProgram
from xlamini.inspection.timing.trace.runs import KernelRun
from xlamini.inspection.timing.trace.trace import Trace
from xlamini.inspection.units import shown
from xlamini.inspection.xla.facts import Examined
from xlamini.staging.aot.stages import Traced
from xlamini.staging.compile.ledger import Function, compilations

_MOST, _LEAST = 5, 0.05
"""So many programs are inspected, each with at least this share of the kernels' time."""
_CALLS = 50
"""The newest calls of a program, whose times its page has."""
_SECONDS = 60.0
"""Inspecting begins no further program after so many seconds."""
_FUNCTION_IS_GONE = "The process no longer has what this program was made from, or it is part of a larger one."


class LinkedPage(NamedTuple):
    """The page of a program, as a link from that of the profile; "" if there is none, and then why."""

    link: str
    why: str = ""


def write_inspections(trace: Trace, page: str, say: Callable[[str], object]) -> dict[str, LinkedPage]:
    """Write the pages into the folder `page_files` beside `page.html`; what came of it, by the names of programs.

    Programs are compiled again, and nothing runs. `say` is told before each. One that fails does not stop the others.
    """
    folder, start, found = Path(f"{os.path.splitext(page)[0]}_files"), time.monotonic(), dict[str, LinkedPage]()
    of_trace = _RecordedPrograms(trace)
    for name, function in of_trace.longest():
        file = folder / f"{re.sub(r'[^A-Za-z0-9_]', '_', name.removeprefix('jit_'))}.html"
        if time.monotonic() - start > _SECONDS:
            found[name] = LinkedPage("", f"The pages before it took {_SECONDS:g} s, so that it has none.")
            continue
        say(f"inspecting {function.name}, which is compiled again, for {file}")
        found[name] = _written(file, partial(of_trace.report, name))
    return found


def _written(file: Path, report: Callable[[], Report | None]) -> LinkedPage:
    """The link to a page that is written, or why it is not."""
    try:
        if (made := report()) is None:
            return LinkedPage("", _FUNCTION_IS_GONE)
        file.parent.mkdir(exist_ok=True)
        made.save(file)
    except KeyboardInterrupt:
        return LinkedPage("", "The inspection was interrupted.")
    except Exception as error:  # of the compiler, a rule, the disk: the page of the profile is written without it
        return LinkedPage("", f"It could not be inspected: {type(error).__name__}: {error}")
    return LinkedPage(f"{quote(file.parent.name)}/{file.name}")


class _RecordedPrograms:
    """The programs of a trace that are functions of the user's."""

    def __init__(self, trace: Trace):
        self._trace = trace

    def longest(self) -> Iterator[tuple[str, Function]]:
        """Those whose kernels took longest, by name."""
        functions, own = functions_of_programs(), self._trace.of_library
        rows = [row for row in time_table(self._trace, "program").rows if row.share >= _LEAST]
        users = [(row.name, functions[row.name]) for row in rows if row.name in functions and row.name not in own]
        yield from [each for each in users if each[1].file and not own_files[each[1].file]][:_MOST]

    def report(self, name: str) -> Report | None:
        """What `inspect` says of a program; None if what it was made from is gone."""
        program = self._program(name)
        if program is None or (source := program.source) is None:
            return None
        earlier = compilations(lambda entry: entry.function == source.ledger_entry.function)
        traced = Traced(source.lowered(), source)
        return Report(build_program_report(traced, earlier, partial(self._measured, program)))

    def _program(self, name: str) -> TracedProgram | None:
        """The program of this name, which takes other types than those of the same name, that took longest."""
        seconds: dict[TracedProgram, float] = {}
        for kernel in self._trace.kernels:
            if kernel.module == name and kernel.of is not None:
                seconds[kernel.of] = seconds.get(kernel.of, 0.0) + kernel.seconds
        return max(seconds, key=lambda program: seconds[program], default=None)

    def _measured(self, program: TracedProgram, found: Examined) -> Examined:
        """What XLA says of a program, with its times in the trace, if they are of the same kernels."""
        names = {kernel.name for kernel in found.kernels}
        runs = [run for run in self._runs(program) if run.kernel in names]
        if not runs:
            return found
        newest = set(list(dict.fromkeys(run.call for run in runs))[-_CALLS:])
        calls = recorded_calls(self._events, [run for run in runs if run.call in newest])
        shares = [*map(call_shares, calls)]
        return _with_words(with_times(found, [call.seconds for call in shares], "", shares))

    def _runs(self, program: TracedProgram) -> Sequence[KernelRun]:
        keys = {key for key, each in self._trace.programs.items() if program in each}
        return [run for run in self._trace.runs if (run.process, run.module, run.program) in keys]

    @cached_property
    def _events(self) -> CallEvents:
        return CallEvents(self._trace.recordings[0].data)


def _with_words(found: Examined) -> Examined:
    """The same, saying what was measured."""
    call = found.measured
    assert call is not None
    low, high = shown(call.low, "seconds"), shown(call.high, "seconds")
    which = f"the median of {call.count} calls in the profile, each from its first kernel to its last"
    return dataclasses.replace(found, measured=call._replace(source=f"{which}; half of them took {low} to {high}"))
