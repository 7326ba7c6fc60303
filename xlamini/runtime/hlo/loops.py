"""How often a loop of a program runs, read from HLO's text: where its counter begins, how it grows, and where it ends.

Compilers of CPUs and GPUs write the number beside the loop; that of TPUs does not.
"""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_TOLD = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_CONDITION = re.compile(r"\bcondition=%?([\w.\-]+)")
_BODY = re.compile(r"\bbody=%?([\w.\-]+)")
_OPERATION = re.compile(r" ([a-z][\w\-]*)\(([^()]*)\)(?:, index=(\d+))?")
_OF_THE_USER = re.compile(r'op_name="[^"]*/while#')
_PASSED_ON = ("copy", "bitcast", "convert")

Lines = Sequence[str]


class Operation(NamedTuple):
    """An instruction: its name, its operands, and which element of a tuple it takes."""

    name: str
    operands: list[str]
    index: int


NOTHING = Operation("", [], -1)


def steps(computations: Mapping[str, Lines], around: str, line: str) -> int:
    """How often the instruction on a `line` of the computation `around` runs what it calls: a loop several times.

    Where the counter's beginning cannot be seen, a loop is taken to count from 0 by 1, as those of scans do. A while
    loop of the user's counts once then, and so does any loop that does not count up to a number.
    """
    told = _TOLD.search(line)
    if told is not None:
        return int(told[1])
    condition, body = (computations.get(m[1], ()) if (m := p.search(line)) else () for p in (_CONDITION, _BODY))
    counter, end = _test(condition)
    if end is None:
        return 1
    start = _element(computations.get(around, ()), _read(line), counter)
    step = _growth(body, counter)
    if start is None or step is None:
        return 1 if _OF_THE_USER.search(line) else end
    return max(-(-(end - start) // step), 0) if step > 0 else 1


def _test(condition: Lines) -> tuple[int, int | None]:
    """Of a condition `counter < number`: which element of the state the counter is, and the number; else None."""
    root = next((line for line in condition if line.lstrip().startswith("ROOT")), "")
    compare = _read(root)
    if compare.name != "compare" or "direction=LT" not in root:
        return -1, None
    counter, end = compare.operands
    return _find(condition, counter).index, _number(condition, end)


def _growth(body: Lines, counter: int) -> int | None:
    """The number that a body adds to the counter."""
    root = next((_read(line) for line in body if line.lstrip().startswith("ROOT")), NOTHING)
    if not 0 <= counter < len(root.operands):
        return None
    add = _find(body, root.operands[counter])
    found = [_number(body, operand) for operand in add.operands if add.name == "add"]
    return next((number for number in found if number is not None), None)


def _element(lines: Lines, loop: Operation, index: int) -> int | None:
    """The number that an element of a loop's state begins with."""
    state = _find(lines, loop.operands[0]) if loop.operands else NOTHING
    known = state.name == "tuple" and 0 <= index < len(state.operands)
    return _number(lines, state.operands[index]) if known else None


def _number(lines: Lines, name: str) -> int | None:
    """The number that an instruction is; None for what is worked out."""
    operation = _find(lines, name)
    if operation.name in _PASSED_ON:
        return _number(lines, operation.operands[0])
    text = operation.operands[0] if operation.name == "constant" and operation.operands else ""
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def _find(lines: Lines, name: str) -> Operation:
    begins = (f"{name} = ", f"%{name} = ")
    found = (line for line in lines if line.lstrip().removeprefix("ROOT ").startswith(begins))
    return _read(next(found, ""))


def _read(line: str) -> Operation:
    match = _OPERATION.search(line)
    if match is None:
        return NOTHING
    operands = [operand.strip(" %") for operand in match[2].split(",") if operand.strip()]
    return Operation(match[1], operands, int(match[3] or -1))
