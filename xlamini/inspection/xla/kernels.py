"""The kernels of a module: the instructions that run by themselves, with their costs, times and equations.

A kernel is an instruction of the entry, or of the body of a loop, branch or call, that is no plumbing. Its cost is that
of XLA's generic analysis for a module that consists of it: operations, and bytes of the arrays' elements that it reads
and writes, without the padding of a TPU's tiles.
"""
from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple

from xlamini.inspection.xla.facts import Roof, XlaKernel
from xlamini.inspection.xla.hlo import BODIES, PLUMBING, HloComputation, Module
from xlamini.inspection.xla.labels import Labelling
from xlamini.runtime.hlo.collectives import COLLECTIVES
from xlamini.runtime.hlo.instructions import Instruction
from xlamini.runtime.hlo.shapes import bytes_of, dimensions_of, elements_of
from xlamini.runtime.hlo.translation import text_cost

PREDICTED, BOUND = "predicted by XLA", "lower bound"

_EXCHANGES = *COLLECTIVES, "send", "recv"
_MOVES = frozenset({"copy", "copy-start", "transpose", "reshape"})
_FREE_TARGETS = frozenset({"AllocateBuffer", "AssumeGatherIndicesInBound"})
_METADATA = re.compile(r', (?:metadata|origin|frontend_attributes)=\{(?:[^{}"]|"(?:[^"\\]|\\.)*"|\{[^{}]*\})*\}')
_NAME = re.compile(r"%[\w.\-]+")
_CONTROL = re.compile(r", control-predecessors=\{[^}]*\}")


class KernelInstruction(NamedTuple):
    """A kernel's instruction, and the computation that it is in."""

    around: HloComputation
    each: Instruction


def kernels_in(module: Module) -> Iterator[KernelInstruction]:
    """The kernels in the order of a run."""
    for around, each in module.ordered():
        if is_kernel(each):
            yield KernelInstruction(around, each)


def is_kernel(each: Instruction) -> bool:
    """Whether an instruction runs by itself; the end of an asynchronous one belongs to its start."""
    if each.opcode in PLUMBING or each.opcode in BODIES or each.opcode.endswith(("-done", "-update")):
        return False
    return each.opcode != "custom-call" or each.target not in _FREE_TARGETS


class ModuleKernels:
    """The kernels of a module on a device with these peaks; `clock` is a TPU's, for XLA's estimates of cycles.

    `failures` are the names of those that XLA could not analyze; they count no operations, and the bytes of their
    operands and results. `library_flops` is what calls of cuDNN and cuBLAS compute, which XLA counts as no operations,
    and `uncounted` has the calls that nothing counts, which have no time.
    """

    def __init__(self, module: Module, labelling: Labelling, roof: Roof | None, clock: float | None):
        self._module, self._labelling, self._roof, self._clock = module, labelling, roof, clock
        self.failures: list[str] = []
        self.uncounted: list[str] = []
        self.library_flops: float = 0.0
        self._costs: dict[str, dict[str, float]] = {}
        self._first = min(map(module.start, module.computations), default=0)

    def read(self) -> tuple[XlaKernel, ...]:
        """All kernels."""
        return tuple(map(self._kernel, kernels_in(self._module)))

    def _kernel(self, found: KernelInstruction) -> XlaKernel:
        around, each = found
        text = self.text(found)
        parts = [(found, text), *((end, self.text(end)) for end in self._ends(found))]
        flops, moved = map(sum, zip(*itertools.starmap(self._cost, parts), strict=True))
        runs = around.times
        seconds, time = self._seconds(each, flops, moved)
        own = self._labelling.own(around, each)
        return XlaKernel(
            each.name,
            self._kind(each),
            each.opcode,
            each.type,
            runs,
            runs * flops,
            runs * moved,
            None if seconds is None else runs * seconds,
            time,
            own or self._labelling.of(around, each),
            not own,
            each.line - self._first,
            text,
        )

    def _ends(self, found: KernelInstruction) -> list[KernelInstruction]:
        """The ends of an asynchronous kernel, whose cost is counted with its own."""
        users = self._module.users[found.around.name].get(found.each.name, ())
        return [found._replace(each=user) for user in users if user.opcode.endswith("-done")]

    def _seconds(self, each: Instruction, flops: float, moved: float) -> tuple[float | None, str | None]:
        """The time of a run, and what it is."""
        if self._clock is not None and each.cycles is not None:
            return each.cycles / self._clock, PREDICTED
        if each.opcode == "custom-call" and not flops and not moved:
            self.uncounted.append(each.target)  # a call of LAPACK, of which XLA knows nothing, takes some time
            return None, None
        if self._roof is None:
            return None, None
        return max(flops / self._roof.flops, moved / self._roof.bandwidth), BOUND

    def _cost(self, found: KernelInstruction, text: str) -> tuple[float, float]:
        """The operations and bytes of a run."""
        types = [o.type for name in found.each.operands if (o := found.around.instructions.get(name))]
        called = self._library_flops(found.each, types) if is_library_call(found.each) else 0.0
        try:
            cost = self._counted(text)
        except (RuntimeError, ValueError):  # XLA's parser
            self.failures.append(found.each.name)
            return called, float(sum(map(bytes_of, [*types, found.each.type])))
        return max(cost.get("flops", 0.0), 0.0) + called, max(cost.get("bytes accessed", 0.0), 0.0)

    def _counted(self, text: str) -> dict[str, float]:
        """XLA's analysis, once for all kernels that differ in names alone, such as those of a model's layers."""
        numbers: dict[str, str] = {}
        key = _NAME.sub(lambda name: numbers.setdefault(name[0], f"%{len(numbers)}"), text.partition("\n")[2])
        if key not in self._costs:
            self._costs[key] = text_cost(text)
        return self._costs[key]

    def _library_flops(self, each: Instruction, operands: list[str]) -> float:
        flops = library_flops(each, operands)
        if flops is None:
            self.uncounted.append(each.target)
        self.library_flops += flops or 0.0
        return flops or 0.0

    def _kind(self, each: Instruction) -> str:
        """What the kernel does: that of the heaviest instruction inside."""
        opcodes = {inside.opcode for inside in self._inside(each)}
        if any(opcode.startswith(_EXCHANGES) for opcode in opcodes):
            return "collective"
        for heavy in ("convolution", "dot", "custom-call"):
            if heavy in opcodes:
                return heavy
        return "copy" if opcodes <= _MOVES else each.opcode

    def _inside(self, each: Instruction) -> Iterator[Instruction]:
        """The instructions that compute: those of a fusion, or the instruction itself."""
        inner = [self._module.computations[name] for name in each.called if name in self._module.computations]
        if each.opcode not in ("fusion", "async-start") or not inner:
            yield each
        for computation in inner if each.opcode in ("fusion", "async-start") else ():
            for inside in computation.instructions.values():
                if inside.opcode not in PLUMBING:
                    yield from self._inside(inside)

    def text(self, found: KernelInstruction) -> str:
        """A module that consists of one kernel; its parameters are the kernel's operands."""
        around, each = found
        operands = list(dict.fromkeys(each.operands))
        known = [around.instructions[name] for name in operands]
        parameters = [f"  %{o.name} = {o.type} parameter({i})" for i, o in enumerate(known)]
        called = "".join(map(self._computation_text, self._needed(each)))
        result = _bare(self._module.lines[each.line]).removeprefix("ROOT ")
        lines = "\n".join([*parameters, f"  ROOT {result}"])
        return f"HloModule {each.name}\n\n{called}ENTRY %main {{\n{lines}\n}}\n"

    def _computation_text(self, name: str) -> str:
        lines = [_bare(self._module.lines[each.line]) for each in self._module.computations[name].instructions.values()]
        inside = "\n".join(f"  {line}" for line in lines)
        return f"%{name} {{\n{inside}\n}}\n\n"

    def _needed(self, each: Instruction) -> list[str]:
        """The computations that an instruction calls, and those that they call, callees first."""
        found: dict[str, None] = {}
        for name in each.called:
            computation = self._module.computations.get(name)
            for inside in computation.instructions.values() if computation else ():
                if inside.called:
                    found.update(dict.fromkeys(self._needed(inside)))
            if computation:
                found[name] = None
        return list(found)


def _bare(line: str) -> str:
    """An instruction's text without what says where it comes from, and what it waits for."""
    line = line.strip()
    if "metadata=" in line or "origin=" in line or "frontend_attributes=" in line:
        line = _METADATA.sub("", line)
    if "custom-call(" not in line:
        line = line.partition(", backend_config=")[0]
    return _CONTROL.sub("", line) if "control-predecessors" in line else line


# --- the operations of calls of cuDNN and cuBLAS, which XLA's analysis counts as none


_CONVOLUTION = re.compile(r"__cudnn\$conv(\w*Forward|BackwardInput|BackwardFilter)$")
_PRODUCT = re.compile(r"__cublas\$(?:gemm|lt\$matmul)")
_KERNEL_LABELS = re.compile(r"\bdim_labels=\w+?_(\w+?)->\w+")
_CONTRACTED = re.compile(r'"lhs_contracting_dimensions":\[([^\]]*)\]')


def library_flops(each: Instruction, operands: Sequence[str]) -> float | None:
    """The operations of a library call, whose operands have these types; None if it is not known what it computes."""
    if _PRODUCT.match(each.target):
        return _product_flops(each, operands)
    convolution = _CONVOLUTION.match(each.target)
    return _convolution_flops(each, operands, convolution[1]) if convolution else None


def is_library_call(each: Instruction) -> bool:
    """Whether an instruction calls a library of NVIDIA's."""
    return each.opcode == "custom-call" and each.target.startswith(("__cudnn$", "__cublas$"))


def _product_flops(each: Instruction, operands: Sequence[str]) -> float | None:
    contracted = _CONTRACTED.search(each.attributes)
    if contracted is None:
        return None
    lhs = dimensions_of(operands[0])
    result = prod(dimensions_of(elements_of(each.type)[0]))
    return 2.0 * result * prod([lhs[int(n)] for n in re.findall(r"\d+", contracted[1])])


def _convolution_flops(each: Instruction, operands: Sequence[str], direction: str) -> float | None:
    """Each element of the output takes a window of products; the derivatives take as many as the convolution does."""
    result, labels = elements_of(each.type)[0], _KERNEL_LABELS.search(each.attributes)
    if labels is None:
        return None
    image, kernel = {"BackwardInput": (operands[0], operands[1]), "BackwardFilter": (operands[1], result)}.get(
        direction, (result, operands[1])
    )
    sides = dimensions_of(kernel)
    return 2.0 * prod(dimensions_of(image)) * prod(sides) / sides[labels[1].index("o")]
