"""Compile a lowered program for one target, and read what XLA says about it."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from xlamini.inspection.xla.assembly import assembly_of
from xlamini.inspection.xla.buffers import HloLiveness, LabelOf, labels_by_name, memory_by_schedule, memory_of
from xlamini.inspection.xla.dump import Dump, DumpedProgram, Missing, compilation_with_dump
from xlamini.inspection.xla.facts import Examined, ExchangedData, HloBoundary, HloCost, HloMemory, Roof, XlaKernel
from xlamini.inspection.xla.flow import Flow, Path
from xlamini.inspection.xla.fusion_choices import FusionChoices
from xlamini.inspection.xla.hlo import Module, labels_of
from xlamini.inspection.xla.kernels import ModuleKernels, kernels_in
from xlamini.inspection.xla.labels import Labelling
from xlamini.inspection.xla.passes import passes_of
from xlamini.inspection.xla.roofs import roof_of, roof_of_this_cpu
from xlamini.inspection.xla.texts import program_text
from xlamini.runtime.execution.executable import CompiledModule
from xlamini.runtime.execution.host_memory import total_bytes
from xlamini.runtime.hlo.collectives import HloCollective, collectives_of
from xlamini.runtime.hlo.shapes import bytes_of, elements_of
from xlamini.runtime.hlo.translation import optimized_cost
from xlamini.runtime.meshes.program_placement import devices_of
from xlamini.staging.aot.kernels import OwnKernel, kernels_of
from xlamini.staging.compile.prediction import predicted

if TYPE_CHECKING:
    from xlamini.runtime.targets.topology import Target
    from xlamini.staging.aot.stages import Lowered

T = TypeVar("T")


def examine(lowered: Lowered, name: str, target: Target | None = None) -> Examined:
    """The program compiled for a target, or for the devices it was lowered for, and all that XLA says about it.

    Arguments and errors are those of `examination`.
    """
    with examination(lowered, name, target) as examined:
        return examined()


@contextmanager
def examination(lowered: Lowered, name: str, target: Target | None = None) -> Iterator[Callable[[], Examined]]:
    """Compile in a thread while the block runs; the function that the block gets waits for it and reads the rest.

    The disk cache is neither read nor written. What cannot be read makes that part alone unavailable.

    Args:
      lowered: `jit(f).lower(…)`.
      name: the target's name in the report, such as "here".
      target: the device to compile for, from `xlamini.target`; None for the program's own devices.

    Raises:
      PlatformError: a program with Python callbacks, and a target.
      JaxRuntimeError: XLA cannot compile it.
    """
    start = time.monotonic()
    there = lowered if target is None else lowered._for_target(target)
    program = there._program
    _ = program.module
    lower_seconds = time.monotonic() - start
    devices = devices_of(program.device)
    found = Examined(name, program.device.platform, devices[0].device_kind, len(devices), lower_seconds=lower_seconds)

    def examined() -> Examined:
        compiled = compilation()
        found.compile_seconds = compiled.seconds
        _Reading(found, compiled, there).read()
        return found

    with compilation_with_dump(program, there._ahead.options) as compilation:
        yield examined


def unexamined(name: str, error: str) -> Examined:
    """The column of a target that cannot be compiled for, with the reason: what to install, or the compiler's error."""
    return Examined(name, error=error)


class _Reading:
    """The reading of one compiled program into an `Examined`, part by part."""

    def __init__(self, found: Examined, compiled: DumpedProgram, lowered: Lowered):
        self._found, self._executable, self._jaxpr = found, compiled.executable, lowered._call.trace.jaxpr
        self._lowered = lowered
        self._dump, self._why_none = compiled.dump, compiled.why_none
        self._target: Target | None = getattr(compiled.executable, "target", None)
        self._text = compiled.executable.as_text()

    def read(self) -> None:
        found = self._found
        found.cost = self._part("cost", lambda: _cost(self._executable))
        found.memory = self._part("memory totals", lambda: _memory(self._executable, self._target, found.platform))
        found.prediction = self._part("prediction", lambda: predicted(self._executable, self._jaxpr, self._text))
        found.roof = self._part("roof", self._roof)
        found.passes = self._part("passes", lambda: passes_of(self._files().passes())) or ()
        found.own_kernels = self._part("own_kernels", self._own_kernels) or ()
        module = self._part("hlo", lambda: _module(self._text))
        if module is not None:
            self._read_module(module, Labelling(module))
            return
        for name in ("coverage", "kernels", "boundaries", "collectives", "buffers", "assembly"):
            found.unavailable[name] = "The optimized HLO could not be read."

    def _read_module(self, module: Module, labelling: Labelling) -> None:
        found = self._found
        found.hlo = self._part("hlo", lambda: program_text("optimized HLO", module, labelling))
        found.coverage = self._part("coverage", labelling.coverage)
        kernels = ModuleKernels(module, labelling, found.roof, self._target.clock if self._target else None)
        found.kernels = self._part("kernels", kernels.read) or ()
        self._complete_cost(kernels)
        found.prediction = found.prediction or _sum_of_bounds(found.kernels)
        choices = self._part("reasons", self._choices)
        found.boundaries = self._part("boundaries", lambda: boundaries_of(module, self._kernels(), choices)) or ()
        label_of = labels_by_name(module, labelling)
        found.collectives = self._part("collectives", lambda: exchanges_of(self._text, label_of)) or ()
        moments = self._moments(module, label_of)
        if moments is not None:
            found.moments, found.buffers = moments
        found.assembly = self._part("assembly", lambda: assembly_of(*self._files().assembly(), found.kernels))

    def _complete_cost(self, kernels: ModuleKernels) -> None:
        """Add the library calls, of which XLA's analysis knows nothing, to the program's cost."""
        found = self._found
        if found.cost is not None:
            found.cost = found.cost._replace(flops=found.cost.flops + kernels.library_flops)
        if kernels.uncounted:
            names = ", ".join(sorted(set(kernels.uncounted)))
            found.unavailable["costs"] = f"Calls of {names} count no operations."
        if kernels.failures:
            names = ", ".join(kernels.failures[:3])
            found.unavailable["costs"] = f"XLA cannot analyze {len(kernels.failures)} kernels alone, such as {names}."

    def _part(self, name: str, read: Callable[[], T]) -> T | None:
        """A part of the report; None, and a sentence in `unavailable`, if it cannot be read."""
        try:
            return read()
        except Missing as error:
            text = str(error)
            self._found.unavailable[name] = f"{text[:1].upper()}{text[1:]}."
        except Exception as error:  # XLA's texts may change in any way, and the other parts can still be read
            self._found.unavailable[name] = f"XLA's output could not be read: {type(error).__name__}: {error}."
        return None

    def _kernels(self) -> tuple[XlaKernel, ...]:
        if "kernels" in self._found.unavailable:
            raise Missing("the kernels could not be read")
        return self._found.kernels

    def _files(self) -> Dump:
        if self._dump is None:
            raise Missing(self._why_none)
        return self._dump

    def _roof(self) -> Roof | None:
        if self._target is not None:
            return roof_of(self._target, self._text)
        if self._found.platform != "cpu":
            raise Missing(f"the peaks of a {self._found.device} are not known; a target of this device has them")
        return roof_of_this_cpu()

    def _own_kernels(self) -> tuple[OwnKernel, ...]:
        program, options = self._lowered._program, self._lowered._ahead.options
        return tuple(kernels_of([(program, self._target, options or {})])[0])

    def _choices(self) -> FusionChoices:
        files = self._files()
        text = files.only("priority_fusion_dump.txt", "why it did not fuse kernels")
        return FusionChoices(text, files.before_fusion())

    def _moments(self, module: Module, label_of: LabelOf) -> HloLiveness | None:
        kernels = self._found.kernels
        found = self._part("live ranges", lambda: self._live_ranges(kernels, label_of))
        return found or self._part("buffers", lambda: memory_by_schedule(module, kernels, label_of))

    def _live_ranges(self, kernels: tuple[XlaKernel, ...], label_of: LabelOf) -> HloLiveness:
        files = self._files()
        live = files.only("-live-range.txt", "the live ranges of its buffers")
        assignment = files.only("-buffer-assignment.txt", "its buffer assignment")
        return memory_of(live, assignment, kernels, label_of)


def _module(text: str) -> Module:
    module = Module(text)
    if module.entry is None:
        raise ValueError("the optimized HLO has no computations in the format that is known")
    return module


def _sum_of_bounds(kernels: Sequence[XlaKernel]) -> tuple[float, str] | None:
    """The time of a program by its kernels, where the compiler predicts none."""
    seconds = [kernel.seconds for kernel in kernels if kernel.seconds is not None]
    return (sum(seconds), "xlamini's bound: the sum of the kernels' lower bounds") if seconds else None


def _cost(executable: CompiledModule) -> HloCost:
    """XLA's generic analysis, which can be compared between targets and is the sum of the kernels'."""
    cost = optimized_cost(executable.loaded)
    return HloCost(max(cost.get("flops", 0.0), 0.0), max(cost.get("bytes accessed", 0.0), 0.0), "xla")


def _memory(executable: CompiledModule, target: Target | None, platform: str) -> HloMemory:
    stats = executable.memory_analysis()
    arguments, outputs, temporaries = (
        stats.argument_size_in_bytes,
        stats.output_size_in_bytes,
        stats.temp_size_in_bytes,
    )
    # The CPU compiler's own peak leaves the temporaries out.
    needed = arguments + outputs + temporaries - stats.alias_size_in_bytes
    peak = max(stats.peak_memory_in_bytes, needed)
    capacity = target.memory if target is not None else total_bytes() if platform == "cpu" else None
    return HloMemory(peak, arguments, outputs, temporaries, stats.generated_code_size_in_bytes, capacity)


# --- the values that pass through memory between kernels


def boundaries_of(
    module: Module, kernels: Sequence[XlaKernel], choices: FusionChoices | None
) -> tuple[HloBoundary, ...]:
    """The values, the largest first; bytes are those of all runs of the kernel that makes the value."""
    numbers = {kernel.name: i for i, kernel in enumerate(kernels)}
    flow = Flow(module)
    readers: dict[tuple[int, Path], list[int]] = {}
    for found in kernels_in(module):
        for value in flow.read_by(found):
            consumers = readers.setdefault((numbers[value.kernel], value.index), [])
            if numbers[found.each.name] not in consumers:
                consumers.append(numbers[found.each.name])
    made = [_boundary(kernels, *key, consumers, choices) for key, consumers in readers.items()]
    return tuple(sorted(made, key=lambda boundary: -boundary.bytes))


def _boundary(
    kernels: Sequence[XlaKernel], producer: int, index: Path, consumers: list[int], choices: FusionChoices | None
) -> HloBoundary:
    kernel = kernels[producer]
    value = _element(kernel.type, index)
    reason, gain = (None, None) if choices is None else choices.between(kernel, [kernels[i] for i in consumers])
    return HloBoundary(value, bytes_of(value) * kernel.runs, producer, tuple(consumers), reason, gain)


def _element(of_type: str, index: Path) -> str:
    for i in index:
        elements = elements_of(of_type)
        of_type = elements[i] if 0 <= i < len(elements) else of_type
    # An asynchronous kernel's type is a tuple of what it makes and of what it works with.
    return elements_of(of_type)[0]


# --- collectives: the equations that they come from, and who asked for them


ASKED_BY = frozenset(
    "all_gather all_gather_invariant all_to_all device_put pbroadcast pmax pmin ppermute psum ragged_all_to_all "
    "reduce_scatter reshard sharding_constraint".split()
)
"""Primitives by which a program asks for an exchange of data between devices."""


def exchanges_of(text: str, label_of: Callable[[str], str | None]) -> tuple[ExchangedData, ...]:
    """The collectives in the text of an optimized program, those that move most first.

    `label_of` gives the first label of an instruction by its name, for one whose op name holds none.
    """
    found = sorted(collectives_of(text), key=lambda each: -each.bytes * each.times)
    return tuple(_exchange(each, label_of(each.name)) for each in found)


def _exchange(each: HloCollective, inherited: str | None) -> ExchangedData:
    labels = labels_of(each.op)
    primitives = {label.rpartition("/")[2].partition("#")[0] for label in labels}
    label = labels[0] if labels else inherited
    asked = bool(primitives & ASKED_BY)
    return ExchangedData(each.kind, each.bytes, each.times, each.group, label, each.op, each.line, asked)
