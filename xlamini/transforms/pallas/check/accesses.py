"""Reads and writes of a ref by a program, with what may be wrong about them."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from xlamini.transforms.pallas.check.machine import Machine
from xlamini.transforms.pallas.check.memory import BEFORE, BEYOND, NOBODY, OUTSIDE, SEVERAL, UNWRITTEN, CheckedBuffer
from xlamini.transforms.pallas.check.parts import ElementPlaces, elements
from xlamini.transforms.pallas.check.twins import Twin, UndefinedCause, contents, differs, first, host, second


def load(machine: Machine, ref: CheckedBuffer, view: Any, operands: Sequence[Any]) -> Any:
    """The value of a part of a ref, a Twin if it is undefined."""
    return load_elements(machine, ref, located(machine, ref, operands, "reads", partial(elements, view, ref.shape)))


def load_elements(machine: Machine, ref: CheckedBuffer, where: ElementPlaces, is_atomic: bool = False) -> Any:
    """The values of elements, a Twin if they are undefined."""
    if not is_atomic:
        _check_read(machine, ref, where)
    a, b = (np.array(lane[where.index]).reshape(where.shape) for lane in ref.lanes)
    unknown = differs(a, b)
    found = _origins(machine, ref, where, unknown) if unknown.any() else frozenset()
    if where.missing is not None:
        a, b = (np.where(where.missing, c, x) for c, x in zip(contents(where.shape, a.dtype), (a, b), strict=True))
        found |= {UndefinedCause(ref.name, OUTSIDE, machine.place)}
    return Twin(a, b, found) if found else a


def store(machine: Machine, ref: CheckedBuffer, view: Any, value: Any, operands: Sequence[Any]) -> None:
    """Write a part of a ref."""
    where = located(machine, ref, operands, "writes", partial(elements, view, ref.shape))
    store_elements(machine, ref, where, value)


def store_elements(
    machine: Machine, ref: CheckedBuffer, where: ElementPlaces, value: Any, is_atomic: bool = False
) -> None:
    """Write elements; atomic updates of several programs are no conflict."""
    _check_write(machine, ref, where, is_atomic)
    for lane, x in zip(ref.lanes, (first(value), second(value)), strict=True):
        lane[where.index] = np.broadcast_to(host(x), where.shape).astype(lane.dtype)
    ref.writer[where.index], ref.place[where.index] = machine.number, machine.line_number()
    ref.atomic[where.index] = is_atomic
    if type(value) is Twin:
        ref.memory.origins |= value.origins


def located(
    machine: Machine,
    ref: CheckedBuffer,
    operands: Sequence[Any],
    verb: str,
    find: Callable[[Sequence[Any]], ElementPlaces],
) -> ElementPlaces:
    """The elements that `find` finds from operands; an error if these are undefined, or lead outside of the ref."""
    for x in operands:
        if type(x) is Twin:
            machine.fail(ref.name, f"an index of {ref.name} depends on {_text(x)}; write that memory first")
    where = find(operands)
    is_lenient = verb == "reads" and machine.params.out_of_bounds_reads == "uninitialized"
    if where.outside is not None and (not is_lenient or where.missing is None):
        negative = where.outside.index < 0
        advice = "a traced index does not count from the end: add the size" if negative else _mask(verb)
        machine.fail(ref.name, f"{verb} {ref.name} at {where.outside}; {advice}")
    return where


def _mask(verb: str) -> str:
    return f"keep the index below the size, or {'read' if verb == 'reads' else 'write'} only under `when` it is"


def _text(x: Twin) -> str:
    return min(map(str, x.origins), default="undefined memory")


def _origins(
    machine: Machine, ref: CheckedBuffer, where: ElementPlaces, unknown: np.ndarray
) -> frozenset[UndefinedCause]:
    """Where undefined elements come from."""
    writer = ref.writer[where.index].reshape(where.shape)[unknown]
    inside = ref.inside[where.index].reshape(where.shape)[unknown]
    found = set(ref.memory.origins) if (writer >= 0).any() else set()
    unwritten = (writer == NOBODY) & inside
    if unwritten.any():
        found.add(UndefinedCause(ref.name, UNWRITTEN, machine.place))
    if ((writer == NOBODY) & ~inside).any():
        found.add(UndefinedCause(ref.name, BEYOND, machine.place))
    return frozenset(found)


def _check_read(machine: Machine, ref: CheckedBuffer, where: ElementPlaces) -> None:
    writers = _numbers(ref.writer, ref, where)
    if ref.kind == "operand" and machine.params.target is not None and writers:
        machine.fail(
            ref.name,
            f"reads elements of {ref.name} that program {machine.order.ids(writers[0])} has written, as a result has "
            "the same memory; read the result, or take input_output_aliases away",
        )
    if ref.kind == "result" and ref.memory.is_window and machine.params.target == "tpu":
        _check_start(machine, ref, where)
    for other in writers:
        if machine.conflicts(other):
            machine.fail(
                ref.name,
                f"reads elements of {ref.name} that program {machine.order.ids(other)} writes, but the two have no "
                "order; give each program elements of its own, or loop inside of one program",
            )
    _note_reader(machine, ref, where)


def _check_start(machine: Machine, ref: CheckedBuffer, where: ElementPlaces) -> None:
    """A TPU copies the blocks of operands into its fast memory, not those of results that have an operand's memory."""
    if (ref.writer[where.index] == BEFORE).any():
        machine.fail(
            ref.name,
            f"reads {ref.name} before writing it, but on a TPU the block of a result does not start with the value of "
            "the operand whose memory it takes; read the operand",
        )


def _note_reader(machine: Machine, ref: CheckedBuffer, where: ElementPlaces) -> None:
    """Note the program as the reader; readers without an order are several."""
    found = ref.reader[where.index]
    several = found == SEVERAL
    for other in _numbers(ref.reader, ref, where):
        if machine.conflicts(other):
            several = several | (found == other)
    ref.reader[where.index] = np.where(several, SEVERAL, machine.number)


def _check_write(machine: Machine, ref: CheckedBuffer, where: ElementPlaces, is_atomic: bool) -> None:
    if ref.kind == "scratch":
        return
    others = np.where(ref.atomic & is_atomic, NOBODY, ref.writer)
    for verb, programs in (("writes", others), ("reads", ref.reader)):
        for other in _numbers(programs, ref, where):
            if other == SEVERAL or machine.conflicts(other):
                whom = "several programs read" if other == SEVERAL else f"program {machine.order.ids(other)} {verb}"
                machine.fail(
                    ref.name,
                    f"writes elements of {ref.name} that {whom}, but they have no order; give each program a block of "
                    "its own, or loop inside of one program",
                )


def _numbers(numbers: np.ndarray, ref: CheckedBuffer, where: ElementPlaces) -> list[int]:
    """The numbers of programs at those of some elements that are in the array; SEVERAL stands for more than one."""
    inside = np.asarray(ref.inside[where.index])
    return [int(n) for n in np.unique(np.asarray(numbers[where.index])[inside]) if n >= 0 or n == SEVERAL]
