"""Causes that the compiled programs of a trace show: what their kernels do, beside the time that these take.

Each yields findings whose share is in seconds of one device.
"""
from __future__ import annotations

import math
from collections.abc import Iterator

from xlamini.inspection.timing.causes.finding import TimeFinding
from xlamini.inspection.timing.causes.loops import moves_stack, too_much_kept
from xlamini.inspection.timing.causes.parts import MOVES, KernelPart, is_on_cpu, parts, summed
from xlamini.inspection.timing.causes.products import line_of_transposed
from xlamini.inspection.timing.trace.trace import TimedKernel, Trace
from xlamini.inspection.units import shown
from xlamini.runtime.hlo.instructions import Instruction
from xlamini.runtime.hlo.shapes import bytes_of

_CACHE_LINE = 64
_MUCH = 0.2
"""Loops and products need some copies; from this share of the time on, what they are made for is worth a look."""
_INDEX_MOVES = MOVES | {"broadcast", "slice"}
_INDEX_SUMS = frozenset({"add", "subtract", "select", "clamp", "maximum", "minimum", "concatenate"})


# --- callbacks


def callbacks(trace: Trace) -> Iterator[TimeFinding]:
    """A compiled program calls Python and waits for it."""
    return summed(trace, _callback, lambda line, kernels: (
        f"{line} calls Python from a compiled program, {sum(k.runs for k in kernels)} times, and waits for it; "
        "write it with jnp, or call it once with all values, outside of the step"
    ))  # fmt: skip


def _callback(kernel: TimedKernel) -> str:
    calls = (part for part in parts(kernel) if part.each.opcode == "custom-call" and "callback" in part.each.target)
    return next((part.place or kernel.place for part in calls), "")


# --- gathers


def gathers_of_neighbours(trace: Trace) -> Iterator[TimeFinding]:
    """Rows that lie one after another are picked by an array of indices."""
    return summed(trace, _gather, lambda line, kernels: (
        f"{line} picks neighbours by an array of indices, one by one; a slice reads them at once: x[i : i + n] for "
        "numbers that are known, else jax.lax.dynamic_slice_in_dim(x, i, n)"
    ))  # fmt: skip


def _gather(kernel: TimedKernel) -> str:
    gathers = (part for part in parts(kernel) if part.each.opcode == "gather")
    slow = (part for part in gathers if not (is_on_cpu(kernel) and _is_wide(part)))
    return next((part.place or kernel.place for part in slow if _is_consecutive(part.operand(1))), "")


def _is_wide(gather: KernelPart) -> bool:
    """Whether what one index picks fills a line of a CPU's cache, so that it is read as fast as a slice."""
    indices = gather.operand(1)
    count = math.prod(indices.dimensions[:-1]) if indices is not None and indices.dimensions else 1
    return bytes_of(gather.each.type) > _CACHE_LINE * count


def _is_consecutive(indices: KernelPart | None) -> bool:
    """Whether indices are `iota` plus what is the same for all."""
    made = set[str]()
    return _is_sum(indices, made, 64) and "iota" in made


def _is_sum(part: KernelPart | None, made: set[str], deepest: int) -> bool:
    """Whether a value is a sum of ranges and scalars; `made` takes what it is made of."""
    if part is None or part.dimensions is None or not deepest:
        return False
    if part.each.opcode in ("iota", "constant") or not part.dimensions:
        made.add(part.each.opcode)
        return True
    inner = list(_summands(part))
    return bool(inner) and all(_is_sum(each, made, deepest - 1) for each in inner)


def _summands(part: KernelPart) -> Iterator[KernelPart | None]:
    """What a value is moved from or the sum of; nothing if it is made in another way."""
    opcode = part.each.opcode
    if opcode == "fusion":
        yield part.fused_root()
    elif opcode in _INDEX_MOVES:
        yield part.operand(0)
    elif opcode in _INDEX_SUMS:
        first = 1 if opcode == "select" else 0  # what chooses between an index and one from the end
        yield from map(part.operand, range(first, len(part.each.operands)))


# --- donation


def undonated_arguments(trace: Trace) -> Iterator[TimeFinding]:
    """An argument is copied, as it is changed in place and the caller keeps it."""
    return summed(trace, _undonated, lambda line, kernels: (
        f"{line} changes a part of an argument of {_name(kernels[0])}, {_size(kernels)}, which is copied in each call, "
        f"{len(kernels[0].calls)} times, as the caller may still read it; donate it: jax.jit(..., donate_argnums=…)"
    ))  # fmt: skip


def _undonated(kernel: TimedKernel) -> str:
    part = next(parts(kernel), None)
    if part is None or part.each.opcode != "copy" or (source := part.operand(0)) is None:
        return ""
    entry = part.program.module.entry
    is_argument = source.root().each.opcode == "parameter" and source.root().around is entry
    users = part.program.module.users[part.around.name].get(part.each.name, ())
    returned = entry is not None and entry.root is not None and part.each.type in entry.root.type
    return kernel.place or _name(kernel) if is_argument and returned and any(map(_changes, users)) else ""


def _changes(user: Instruction) -> bool:
    """Whether an instruction writes into its operand."""
    return any(word in user.name + user.opcode for word in ("update", "scatter", "while"))


# --- float64


def wider_floats(trace: Trace) -> Iterator[TimeFinding]:
    """Arrays of float32 become float64, as they meet one, and so does all that follows."""
    first: dict[str, str] = {}
    for kernel in trace.kernels:
        for part in parts(kernel):
            if _widens(part):
                first.setdefault(kernel.program, part.place or kernel.place)

    def line_of(kernel: TimedKernel) -> str:
        return first.get(kernel.program, "") if _has_float64(kernel) else ""

    return summed(trace, line_of, lambda line, _: (
        f"{line} makes float64 of float32, as the other operand is float64, and what follows computes in it; convert "
        "that one: .astype('float32')"
    ))  # fmt: skip


def _widens(part: KernelPart) -> bool:
    """Whether the program converts, not the compiler, which computes a sine of float32 by way of float64."""
    if not part.each.op_name.rpartition("/")[2].startswith("convert_element_type"):
        return False
    inner = part.operand(0) if part.each.opcode == "convert" and part.each.type.startswith("f64[") else None
    return inner is not None and inner.each.type.startswith("f32[") and bool(inner.dimensions)


def _has_float64(kernel: TimedKernel) -> bool:
    return any("f64[" in part.each.type for part in parts(kernel))


# --- copies


def inserted_copies(trace: Trace) -> Iterator[TimeFinding]:
    """The compiler copies values that no line copies, for another reason than those above.

    They are short, so that other programs of the machine hold them up for longer than they take: the fastest runs tell.
    """
    kept = too_much_kept(trace)

    def line_of(kernel: TimedKernel) -> str:
        stacks = kept[kernel.of] if kernel.of is not None else ()
        return "" if any(moves_stack(kernel, each) for each in stacks) else _inserted(kernel)

    fastest, lines = dict[str, float](), dict[int, str]()
    for kernel in trace.kernels:
        line = lines[id(kernel)] = line_of(kernel)
        fastest[line] = fastest.get(line, 0.0) + sum(kernel.devices.values())
    much = _MUCH * sum(fastest.values())
    found = summed(trace, lambda kernel: lines[id(kernel)], lambda line, kernels: (
        f"the compiler puts {len(kernels)} copies in at {line} ({', '.join(k.name for k in kernels[:3])}); "
        "xlamini.inspect shows which values they move: what two lines read in different orders, or change and keep"
    ))  # fmt: skip
    return (each for each in found if each.share > _MUCH * trace.span and fastest[each.line] > much)


def _inserted(kernel: TimedKernel) -> str:
    part = next(parts(kernel), None)
    is_copy = part is not None and kernel.is_inserted and part.each.opcode in ("copy", "transpose")
    has_reason = is_copy and (_undonated(kernel) or line_of_transposed(kernel))
    return kernel.place if is_copy and not has_reason else ""


def _name(kernel: TimedKernel) -> str:
    return kernel.module.removeprefix("jit_")


def _size(kernels: list[TimedKernel]) -> str:
    return shown(sum(bytes_of(next(parts(kernel)).each.type) for kernel in kernels), "bytes")
