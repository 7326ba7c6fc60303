"""Products of matrices of which one lies transposed."""
from __future__ import annotations

import math
from collections.abc import Iterator

from xlamini.inspection.timing.causes.finding import TimeFinding
from xlamini.inspection.timing.causes.parts import KernelPart, is_on_cpu, parts, seconds_of, summed
from xlamini.inspection.timing.trace.programs import TracedProgram
from xlamini.inspection.timing.trace.trace import TimedKernel, Trace
from xlamini.inspection.xla.hlo import HloComputation
from xlamini.inspection.xla.roofs import roof_of_this_cpu
from xlamini.runtime.hlo.instructions import Instruction
from xlamini.runtime.hlo.shapes import bytes_of, dimensions_of

_ACROSS = "lhs_contracting_dims={0}"
"""A product that reads the columns of its left operand."""
_SLOW = 4
"""A product that takes so many times what the machine needs for it is not slowed down by others alone."""


def transposed_products(trace: Trace) -> Iterator[TimeFinding]:
    """An operand of a product lies transposed: it is brought into order in each call, or read against its order."""
    return summed(trace, lambda k: line_of_transposed(k) or _read_across(k), lambda line, kernels: (
        f"{line} multiplies by an array that lies transposed, {sum(k.runs for k in kernels)} times; keep it in memory "
        "as the product reads it: w = jnp.array(w.T) once, before the loop, and w @ x in place of w.T @ x"
    ))  # fmt: skip


def line_of_transposed(kernel: TimedKernel) -> str:
    """The line of a product whose operand a kernel transposes."""
    part = next(parts(kernel), None)
    if part is None or part.around is not part.program.module.entry or not _transposes(kernel):
        return ""
    users = part.program.module.users[part.around.name].get(part.each.name, ())
    products = [user for user in users if _is_product(part.program, part.around, user)]
    return part.program.place_of(part.around, products[0]) or kernel.place if products else ""


def _transposes(kernel: TimedKernel) -> bool:
    opcodes = {part.each.opcode for part in parts(kernel)} - {"parameter", "fusion", "bitcast", "copy"}
    part = next(parts(kernel))
    moved = part.operand(0) if part.each.opcode == "copy" else None
    return opcodes == {"transpose"} or (moved is not None and moved.each.type != part.each.type)


def _is_product(program: TracedProgram, around: HloComputation, each: Instruction) -> bool:
    if each.opcode == "bitcast":
        return any(_is_product(program, around, user) for user in program.module.users[around.name].get(each.name, ()))
    return any(inner.opcode == "dot" for _, inner in program.fused(around, each))


def _read_across(kernel: TimedKernel) -> str:
    """The line of a product on a CPU that reads the columns of an argument, at a quarter of the machine's speed."""
    dot = next((part for part in parts(kernel) if part.each.opcode == "dot" and _ACROSS in part.each.attributes), None)
    if dot is None or not is_on_cpu(kernel):
        return ""
    operands = [operand for number in (0, 1) if (operand := dot.operand(number)) is not None]
    if len(operands) < 2 or not _is_argument(operands[0]) or _is_read_along(operands[0].root()):
        return ""
    return dot.place or kernel.place if seconds_of(kernel) > _SLOW * kernel.runs * _bound(dot, operands) else ""


def _is_argument(part: KernelPart) -> bool:
    source = part.root()
    return source.each.opcode == "parameter" and source.around is source.program.module.entry


def _is_read_along(argument: KernelPart) -> bool:
    """Whether another product reads the rows of an argument, as the gradient's and the layer's own differ in this."""
    found = (KernelPart(argument.program, around, each) for around, each in argument.program.all_instructions())
    others = (part for part in found if part.each.opcode == "dot" and _ACROSS not in part.each.attributes)
    return any(
        operand is not None and operand.root().each.name == argument.each.name
        for part in others
        for operand in (part.operand(0), part.operand(1))
    )


def _bound(dot: KernelPart, operands: list[KernelPart]) -> float:
    """The least seconds of a product of matrices on this CPU."""
    roof, types = roof_of_this_cpu(), [dot.each.type, *(operand.each.type for operand in operands)]
    flops = 2.0 * math.prod(dimensions_of(dot.each.type)) * dimensions_of(operands[0].each.type)[0]
    return max(flops / roof.flops, sum(map(bytes_of, types)) / roof.bandwidth)
