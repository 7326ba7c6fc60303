"""From a function and its arguments to the content of the report: trace, rewrite, lower, compile, and put together."""
from __future__ import annotations

import dataclasses
import platform
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xlamini.analysis.lints.lint import found_in, program_of
from xlamini.core import Jaxpr, Values, paused_gc
from xlamini.core.errors import JaxRuntimeError, PlatformError, TargetError
from xlamini.core.version import __version__
from xlamini.inspection.findings import findings_of
from xlamini.inspection.memory import memory_of
from xlamini.inspection.recording import Recorder, recording
from xlamini.inspection.shardings import mesh_of
from xlamini.inspection.signature import arguments_of, results_of
from xlamini.inspection.sources import sources_of
from xlamini.inspection.stages import Stages
from xlamini.inspection.xla.entry import entry_of
from xlamini.inspection.xla.examine import examine, unexamined
from xlamini.inspection.xla.facts import Examined
from xlamini.runtime.targets.topology import Target, target as target_of
from xlamini.runtime.versions import JAXLIB
from xlamini.staging.aot.stages import Lowered, Traced
from xlamini.staging.compile.ledger import Compilations
from xlamini.staging.run.jit import Jitted
from xlamini.staging.run.jit_caches import SharedCaches

SCHEMA = 1
HERE = "here"
NO_COMPILER = (PlatformError, TargetError)
"""What a target raises whose compiler is not installed, or that cannot take the program."""


class Options(NamedTuple):
    """What the report shall have: the targets, the text of source files, the values of a run."""

    targets: Sequence[str] = (HERE,)
    source: bool = True
    values: bool = False


class Inspection:
    """A function that is inspected for certain arguments, and the report so far."""

    def __init__(
        self, fun: Callable[..., Any], traced: Traced, seconds: float, earlier: Compilations, options: Options
    ):
        self.fun, self.traced, self.options, self.compilations = fun, traced, options, earlier
        self.seconds, self.stages = seconds, Stages()
        self.first: Lowered | None = None
        self.programs: list[Jaxpr] = []
        self.content: dict[str, Any] = {}

    def run(self, recorder: Recorder) -> dict[str, Any]:
        """The report; a failure of lowering ends it early, and is part of it."""
        name = self.traced.fun_name
        self.content = {"schema": SCHEMA, "made_with": _versions(), "name": name, "failure": None, "targets": []}
        try:
            for target in self.options.targets:
                self._add_target(target, recorder)
        except Exception as error:
            self.content["failure"] = {"stage": "lower", "error": f"{type(error).__name__}: {error}"}
        if self.first is None:
            self._add_programs(recorder, self.traced.jaxpr.jaxpr)
        self._add_facts()
        return self.content

    def _add_target(self, name: str, recorder: Recorder) -> None:
        targets = self.content["targets"]
        start = time.perf_counter()
        try:
            device = None if name == HERE else target_of(name)
            lowered = self.traced.lower() if device is None else self.traced.lower(target=device)
            seconds = time.perf_counter() - start
        except (*NO_COMPILER, ValueError) as error:
            if name == HERE and isinstance(error, ValueError):
                raise
            targets.append(self._entry(unexamined(name, str(error)), None))
            return
        self.first = self.first or lowered
        final = self._add_programs(recorder, lowered._program.pruned, lowered._program.jaxpr)
        stablehlo = self.stages.add_stablehlo(lowered, final, len(targets), seconds)
        examined = dataclasses.replace(_examined(lowered, name, device), lower_seconds=seconds)
        targets.append(self._entry(examined, final, stablehlo))

    def _add_programs(self, recorder: Recorder, *programs: Jaxpr) -> int:
        """Add the stages that are jaxprs; the number of the last one, which is lowered."""
        self.programs.extend(programs)
        for rewrite in recorder.of_programs(self.programs):
            self.stages.add_rewrite(rewrite)
        name, number = self.traced.fun_name, None
        for program, what in zip(programs, ("lowered", "repeated blocks outlined"), strict=False):
            number = self.stages.add(program, f"{name}: {what}", of=number)
        assert number is not None
        self.content.setdefault("final", number)
        return number

    def _entry(self, examined: Examined, final: int | None, stablehlo: int | None = None) -> dict[str, Any]:
        row_of = self.stages.row_of_label(final) if final is not None else lambda label: None
        number = len(self.content["targets"])
        return {**entry_of(examined, row_of, self.stages.found, number, stablehlo), "final": final}

    def _add_facts(self) -> None:
        content, stages, lowered = self.content, self.stages, self.first
        plan = self.traced.memory_plan()
        if lowered is not None:
            program = lowered._program.pruned
            content["memory"] = memory_of(plan, program, stages.rows_of(program), stages.table)
            content |= {"arguments": arguments_of(lowered), "results": results_of(lowered), "mesh": mesh_of(lowered)}
        else:
            content |= {"memory": None, "arguments": [], "results": [], "mesh": None}
        content |= {
            "sources": sources_of(list(stages.table.files.numbers), self.options.source),
            "equations": stages.table.columns(),
            "stages": stages.found,
            "program": self._strip(),
            "totals": _totals(self.traced),
            "compilations": list(map(_compilation, self.compilations)),
            "values": None,
        }
        lints = found_in(program_of(self.fun, self.traced))
        content["findings"] = findings_of(content, list(lints))

    def _strip(self) -> list[dict[str, Any]]:
        """The way from Python to kernels, with counts and seconds."""
        stages = self.stages.found
        steps = [{"title": "Python", "count": 1, "seconds": self.seconds, "stage": None}]
        for number, stage in enumerate(stages):
            if stage["kind"] in ("jaxpr", "stablehlo", "hlo") and stage["target"] in (None, 0):
                steps.append({**{key: stage[key] for key in ("title", "count", "seconds")}, "stage": number})
        for target in self.content["targets"][:1]:
            kernels = {"title": "kernels", "count": len(target["kernels"]), "seconds": None, "stage": target["hlo"]}
            steps.append(kernels)
        return steps


def build_report(jitted: Any, args: Values, kwargs: dict[str, Any], options: Options) -> dict[str, Any]:
    """The content of the report of a jitted function for these arguments; raises what tracing raises."""
    compilations, recorder = jitted.compilations(), Recorder()
    fresh = _anew(jitted.trace.__self__)
    with recording(recorder):
        start = time.perf_counter()
        traced = fresh.traced(*args, **kwargs)
        inspection = Inspection(fresh.fun, traced, time.perf_counter() - start, compilations, options)
        with paused_gc():
            content = inspection.run(recorder)
        if options.values and content["failure"] is None:
            from xlamini.inspection.values import values_of  # for those who asked

            content["values"] = values_of(traced, args, kwargs, fresh.traced, inspection.stages.table)
    return content


def _anew(jitted: Jitted) -> Jitted:
    """The same function under the same options, with traces and programs of its own."""
    fresh = Jitted(jitted.fun, jitted.options)
    fresh.caches = SharedCaches()
    return fresh


def _examined(lowered: Lowered, name: str, device: Target | None) -> Examined:
    try:
        return examine(lowered, name, device)
    except (*NO_COMPILER, JaxRuntimeError) as error:
        return unexamined(name, str(error))


def _versions() -> dict[str, str]:
    return {"xlamini": __version__, "jaxlib": JAXLIB, "python": platform.python_version()}


def _totals(traced: Traced) -> dict[str, Any]:
    cost = traced.cost().as_dict()
    return {key: cost[key] for key in ("flops", "bytes", "intensity", "by_direction", "left_out")}


def _compilation(entry: Any) -> dict[str, Any]:
    cause = {"kind": entry.cause.kind, "text": entry.cause.text, "edit": entry.cause.edit}
    return {"function": str(entry.function), "site": entry.where, "cause": cause, "seconds": dict(entry.seconds)}
