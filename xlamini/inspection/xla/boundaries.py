"""The values that pass through memory between kernels, and the compiler's reasons for not fusing."""
from __future__ import annotations

from collections.abc import Sequence

from xlamini.inspection.xla.examined import Boundary, Kernel
from xlamini.inspection.xla.flow import Flow, Path
from xlamini.inspection.xla.fusion_choices import FusionChoices
from xlamini.inspection.xla.hlo import Module
from xlamini.inspection.xla.kernels import kernels_in
from xlamini.runtime.hlo.shapes import bytes_of, elements_of


def boundaries_of(module: Module, kernels: Sequence[Kernel], choices: FusionChoices | None) -> tuple[Boundary, ...]:
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
    kernels: Sequence[Kernel], producer: int, index: Path, consumers: list[int], choices: FusionChoices | None
) -> Boundary:
    kernel = kernels[producer]
    value = _element(kernel.type, index)
    reason, gain = (None, None) if choices is None else choices.between(kernel, [kernels[i] for i in consumers])
    return Boundary(value, bytes_of(value) * kernel.runs, producer, tuple(consumers), reason, gain)


def _element(of_type: str, index: Path) -> str:
    for i in index:
        elements = elements_of(of_type)
        of_type = elements[i] if 0 <= i < len(elements) else of_type
    # An asynchronous kernel's type is a tuple of what it makes and of what it works with.
    return elements_of(of_type)[0]
