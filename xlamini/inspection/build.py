"""From a function and its arguments to the content of the report: trace, rewrite, lower, compile, and put together."""
from __future__ import annotations

import dataclasses
import linecache
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from xlamini.analysis.lints.finding import Finding
from xlamini.analysis.lints.lint import found_in, program_of
from xlamini.core import Jaxpr, Values, paused_gc
from xlamini.core.errors import JaxRuntimeError, PlatformError, TargetError
from xlamini.core.errors.frames import own_files
from xlamini.inspection.findings import findings_of
from xlamini.inspection.memory import memory_of
from xlamini.inspection.recording import Recorder, recording
from xlamini.inspection.schema import VERSION, made_with
from xlamini.inspection.signature import arguments_of, results_of
from xlamini.inspection.stablehlo import text_of
from xlamini.inspection.stages import PASSES, Stages
from xlamini.inspection.timing.measure.function import MeasuredFunction, measured
from xlamini.inspection.xla.entry import entry_of
from xlamini.inspection.xla.examine import examination, unexamined
from xlamini.inspection.xla.facts import Examined
from xlamini.runtime.meshes.program_placement import MeshPlacement
from xlamini.runtime.targets.topology import Target, target as target_of
from xlamini.staging.aot.stages import Lowered, Traced
from xlamini.staging.compile.compile_request import CompileRequest
from xlamini.staging.compile.ledger import Compilations
from xlamini.staging.run.jit.jitted_function import Jitted
from xlamini.staging.run.programs import SharedCaches

T = TypeVar("T")
NamedTarget = tuple[str, Target | None]
"""The name of a target, and the target itself unless it is the program's own devices."""
HERE = "here"
NO_COMPILER = (PlatformError, TargetError)
"""What a target raises whose compiler is not installed, or that cannot take the program."""


class ReportOptions(NamedTuple):
    """What the report shall have: the targets, the text of source files, the values of a run, measured times."""

    targets: Sequence[str] = (HERE,)
    source: bool = True
    values: bool = False
    measure: bool = False


Measure = Callable[[Examined], Examined]
"""Adds the measured times to what XLA says of a program."""


class Inspection:
    """A traced function that is inspected, and the report so far.

    `fun` is the function itself, for its lints. `seconds` is the time of tracing, `earlier` is what the ledger has of
    the function.
    """

    compilations: Compilations
    fun: Callable[..., Any] | None
    options: ReportOptions
    traced: Traced
    seconds: float
    stages: Stages

    def __init__(
        self,
        traced: Traced,
        earlier: Compilations,
        options: ReportOptions,
        measure: Measure | None = None,
        fun: Callable[..., Any] | None = None,
        seconds: float = 0.0,
    ):
        self.traced, self.options, self.compilations, self.fun = traced, options, earlier, fun
        self.measure, self.seconds, self.stages = measure, seconds, Stages()
        self.first: Lowered | None = None
        self.programs: list[Jaxpr] = []
        self.content: dict[str, Any] = {}

    def run(self, recorder: Recorder) -> dict[str, Any]:
        """The report; what fails is left out of it, and the first failure is part of it."""
        name = self.traced.fun_name
        self.content = {"schema": VERSION, "made_with": made_with(), "name": name, "failure": None, "targets": []}
        for target in self.options.targets:
            self._add_target(target, recorder)
        if self.first is None:
            self._add_rewrites(recorder, self.traced._program.jaxpr)
            self.content["final"] = self.stages.add_traced(self.traced._program.jaxpr)
        self._add_facts()
        return self.content

    def part(self, stage: str, make: Callable[[], T], instead: T) -> T:
        """A part of the report; if making it fails, what stands in its place."""
        try:
            return make()
        except Exception as error:
            self._failed(stage, error)
            return instead

    def _failed(self, stage: str, error: Exception) -> None:
        """Note the first failure."""
        self.content["failure"] = self.content["failure"] or {"stage": stage, "error": _named(error)}

    def _add_target(self, name: str, recorder: Recorder) -> None:
        targets = self.content["targets"]
        start = time.perf_counter()
        try:
            device = None if name == HERE else target_of(name)
            lowered = self.traced.lower() if device is None else self.traced.lower(target=device)
            seconds = time.perf_counter() - start
        except Exception as error:
            is_expected = isinstance(error, NO_COMPILER) or (isinstance(error, ValueError) and name != HERE)
            if not is_expected:
                self._failed("lower", error)
            targets.append(self._entry(unexamined(name, str(error) if is_expected else _named(error)), None))
            return
        self.first = self.first or lowered
        self._add_lowered((name, device), lowered, seconds, recorder)

    def _add_lowered(self, place: NamedTarget, lowered: Lowered, seconds: float, recorder: Recorder) -> None:
        """Add the stages of a program while XLA compiles it, then what XLA says."""
        (name, device), targets, program = place, self.content["targets"], lowered._program
        text = text_of(lowered)  # before the compiler takes the module, as MLIR's context is not for two threads
        with examination(lowered, name, device) as examined:
            final = self._add_programs(recorder, program)
            facts = {"target": len(targets), "seconds": seconds}
            stablehlo = self.stages.add_stablehlo(text, program.device.platform, final, **facts)
            found = dataclasses.replace(_result(examined, name), lower_seconds=seconds)
        if self.measure is not None and name == HERE and found.error is None:
            found = self.part("measure", partial(self.measure, found), found)
        targets.append(self._entry(found, final, stablehlo))

    def _add_programs(self, recorder: Recorder, program: CompileRequest) -> int:
        """Add the stages that are jaxprs; the number of the last one, which is lowered."""
        name, platform = self.traced.fun_name, program.device.platform
        self._add_rewrites(recorder, program.pruned, program.back.passed["outline"])
        number = self.stages.add_traced(program.pruned)
        for each, title in PASSES.items():
            jaxpr = program.back.passed[each]
            number = self.stages.add(jaxpr, f"{name}: {title.format(platform)}", of=number, rewrite=each)
        self.content.setdefault("final", number)
        return number

    def _add_rewrites(self, recorder: Recorder, *programs: Jaxpr) -> None:
        """Add what rewrites took and gave until they gave these programs."""
        self.programs.extend(programs)
        for rewrite in recorder.of_programs(self.programs):
            if rewrite.name not in PASSES:  # which are added by themselves
                self.stages.add_rewrite(rewrite)

    def _entry(self, examined: Examined, final: int | None, stablehlo: int | None = None) -> dict[str, Any]:
        row_of = self.stages.row_of_label(final) if final is not None else lambda label: None
        number = len(self.content["targets"])
        rows = self.stages.table.rows

        def work_of(row: int) -> float:
            return rows[row].flops + rows[row].bytes

        return {**entry_of(examined, row_of, work_of, self.stages.found, number, stablehlo), "final": final}

    def _add_facts(self) -> None:
        content, stages, lowered = self.content, self.stages, self.first
        if stages.table.failure is not None:
            self._failed("cost", stages.table.failure)
        content |= {"memory": None, "arguments": [], "results": [], "mesh": None}
        if lowered is not None:
            content["memory"] = self.part("memory plan", partial(self._memory, lowered._program.pruned), None)
            content |= {"arguments": arguments_of(lowered), "results": results_of(lowered), "mesh": mesh_of(lowered)}
        content |= {
            "sources": sources_of(list(stages.table.files.numbers), self.options.source),
            "equations": stages.table.columns(),
            "stages": stages.found,
            "program": self._strip(),
            "totals": self.part("cost", partial(_totals, self.traced), None),
            "compilations": list(map(_compilation, self.compilations)),
            "values": None,
        }
        content["findings"] = findings_of(content, self.part("lint", self._lints, []))

    def _memory(self, program: Jaxpr) -> dict[str, Any]:
        return memory_of(self.traced.memory_plan(), program, self.stages.rows_of(program), self.stages.table)

    def _lints(self) -> list[Finding]:
        return [] if self.fun is None else list(found_in(program_of(self.fun, self.traced)))

    def _strip(self) -> list[dict[str, Any]]:
        """The way from Python to the kernels of the first target that was lowered for, with counts and seconds."""
        stages, targets = self.stages.found, self.content["targets"]
        first = next((stage["target"] for stage in stages if stage["kind"] == "stablehlo"), None)
        steps = [{"title": "Python", "count": 1, "seconds": self.seconds, "stage": None}]
        for number, stage in enumerate(stages):
            if stage["kind"] in ("jaxpr", "stablehlo", "hlo") and stage["target"] in (None, first):
                steps.append({**{key: stage[key] for key in ("title", "count", "seconds")}, "stage": number})
        if first is not None and targets[first]["error"] is None:
            target = targets[first]
            kernels = {"title": "kernels", "count": len(target["kernels"]), "seconds": None, "stage": target["hlo"]}
            steps.append(kernels)
        return steps


def build_report(jitted: Any, args: Values, kwargs: dict[str, Any], options: ReportOptions) -> dict[str, Any]:
    """The content of the report of a jitted function for these arguments; raises what tracing raises."""
    compilations, recorder = jitted.compilations(), Recorder()
    fresh = _anew(jitted.trace.__self__)
    with recording(recorder):
        start = time.perf_counter()
        traced = fresh.traced(*args, **kwargs)
        seconds = time.perf_counter() - start
        # With static arguments the compiled program takes others than the function, so the function is called.
        function = MeasuredFunction(traced.fun_name, jitted, args, kwargs, bool(traced._program.jaxpr.effects))
        measure = partial(measured, function=function) if options.measure else None
        inspection = Inspection(traced, compilations, options, measure, fresh.fun, seconds)
        with paused_gc():
            content = inspection.run(recorder)
        if options.values and content["failure"] is None:
            from xlamini.inspection.values import values_of  # for those who asked

            run = partial(values_of, inspection.traced, args, kwargs, fresh.traced, inspection.stages.table)
            content["values"] = inspection.part("values", run, None)
    return content


def build_program_report(traced: Traced, earlier: Compilations, measure: Measure) -> dict[str, Any]:
    """The content of the report of a function that was traced before: it is compiled again, and nothing of it runs."""
    recorder, seconds = Recorder(), sum(entry.seconds.get("trace", 0.0) for entry in earlier)
    with recording(recorder), paused_gc():
        return Inspection(traced, earlier, ReportOptions(), measure, seconds=seconds).run(recorder)


def _anew(jitted: Jitted) -> Jitted:
    """The same function under the same options, with traces and programs of its own."""
    fresh = Jitted(jitted.fun, jitted.options)
    fresh.caches = SharedCaches()
    return fresh


def _result(examined: Callable[[], Examined], name: str) -> Examined:
    """What XLA says about a program, or why it did not compile it."""
    try:
        return examined()
    except (*NO_COMPILER, JaxRuntimeError) as error:
        return unexamined(name, str(error))


def _named(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _totals(traced: Traced) -> dict[str, Any]:
    cost = traced.cost().as_dict()
    return {key: cost[key] for key in ("flops", "bytes", "intensity", "by_direction", "left_out")}


def _compilation(entry: Any) -> dict[str, Any]:
    cause = {"kind": entry.cause.kind, "text": entry.cause.text, "edit": entry.cause.edit}
    return {"function": str(entry.function), "site": entry.where, "cause": cause, "seconds": dict(entry.seconds)}


# --- the source files of a program, for the screen that shows the user's lines


_INSTALLED = ("site-packages", "dist-packages", "/lib/python")


def sources_of(files: list[str], with_text: bool) -> list[dict[str, Any]]:
    """Each file with its lines, or without where they are not wanted or cannot be read."""
    return [{"file": f, "lines": _lines(f) if with_text else None, "library": _is_library(f)} for f in files]


def _lines(file: str) -> list[str] | None:
    lines = linecache.getlines(file)
    return [line.rstrip("\n") for line in lines] or None


def _is_library(file: str) -> bool:
    return own_files[file] or any(folder in file for folder in _INSTALLED)


# --- the mesh of a program, and how its arguments lie on it, for the screen that draws shards


def mesh_of(lowered: Lowered) -> dict[str, Any] | None:
    """The mesh as the schema has it; None for a program on one device."""
    program, call = lowered._program, lowered._call
    place = program.device
    if not isinstance(place, MeshPlacement):
        return None
    mesh = place.mesh
    axes = [{"name": str(name), "size": size} for name, size in mesh.shape.items()]
    for axis, kind in zip(axes, mesh.axis_types, strict=True):
        axis["type"] = kind.name
    names = [*["a captured array"] * len(call.trace.captured), *call.trace.names]
    used = [name for name, is_used in zip(names, program.used_inputs, strict=True) if is_used]
    inputs = zip(used, program.pruned.in_avals, place.of_inputs(len(used)), strict=True)
    ids = np.vectorize(lambda device: device.id, otypes=[int])(mesh.devices)
    return {"axes": axes, "devices": ids.tolist(), "values": [_value(*each) for each in inputs]}


def _value(name: str, aval: Any, sharding: Any) -> dict[str, Any]:
    spec = [part if part is None or isinstance(part, str) else list(part) for part in sharding.spec]
    shards = [
        {"device": device.id, "index": [_range(part, n) for part, n in zip(index, aval.shape, strict=True)]}
        for device, index in sharding.devices_indices_map(aval.shape).items()
    ]
    return {"row": None, "name": name, "type": aval.str_short(), "spec": spec, "shards": shards}


def _range(part: slice, size: int) -> list[int]:
    start, stop, _ = part.indices(size)
    return [start, stop]
