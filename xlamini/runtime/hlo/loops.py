"""Trip counts of loops in HLO text, from the counter's start, step and end.

The CPU and GPU compilers annotate a loop with its trip count; the TPU compiler does not.
"""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

_TRIP_COUNT = re.compile(r'"known_trip_count":\{"n":"(\d+)"')
_CONDITION = re.compile(r"\bcondition=%?([\w.\-]+)")
_BODY = re.compile(r"\bbody=%?([\w.\-]+)")
_OPERATION = re.compile(r" ([a-z][\w\-]*)\(([^()]*)\)(?:, index=(\d+))?")
_OF_THE_USER = re.compile(r'op_name="[^"]*/while#')
_PASSED_ON = ("copy", "bitcast", "convert")

Lines = Sequence[str]


class HloOperation(NamedTuple):
    """An instruction: its opcode, its operands, and the tuple index of a get-tuple-element."""

    name: str
    operands: list[str]
    index: int


NOTHING = HloOperation("", [], -1)


def trip_count(computations: Mapping[str, Lines], around: str, line: str) -> int:
    """The trip count of the instruction on a `line` of the computation `around`; 1 if it is no loop.

    If the counter's start or step is not constant, a loop is assumed to count from 0 by 1, as a scan does. A while loop
    of the user's program then counts once, and so does any loop without a constant bound.
    """
    if "body=" not in line:
        return 1
    annotated = _TRIP_COUNT.search(line)
    if annotated is not None:
        return int(annotated[1])
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
    """The counter's index in the loop state and the bound, of a condition `counter < bound`; else (-1, None)."""
    root = next((line for line in condition if line.lstrip().startswith("ROOT")), "")
    compare = _read(root)
    if compare.name != "compare" or "direction=LT" not in root:
        return -1, None
    counter, end = compare.operands
    return _find(condition, counter).index, _number(condition, end)


def _growth(body: Lines, counter: int) -> int | None:
    """The constant that a body adds to the counter; None if there is none."""
    root = next((_read(line) for line in body if line.lstrip().startswith("ROOT")), NOTHING)
    if not 0 <= counter < len(root.operands):
        return None
    add = _find(body, root.operands[counter])
    found = [_number(body, operand) for operand in add.operands if add.name == "add"]
    return next((number for number in found if number is not None), None)


def _element(lines: Lines, loop: HloOperation, index: int) -> int | None:
    """The constant initial value of an element of a loop's state; None if there is none."""
    state = _find(lines, loop.operands[0]) if loop.operands else NOTHING
    is_tuple = state.name == "tuple" and 0 <= index < len(state.operands)
    return _number(lines, state.operands[index]) if is_tuple else None


def _number(lines: Lines, name: str) -> int | None:
    """The value of a constant instruction; None for a computed value."""
    operation = _find(lines, name)
    if operation.name in _PASSED_ON:
        return _number(lines, operation.operands[0])
    text = operation.operands[0] if operation.name == "constant" and operation.operands else ""
    return int(text) if re.fullmatch(r"-?\d+", text) else None


def _find(lines: Lines, name: str) -> HloOperation:
    begins = (f"{name} = ", f"%{name} = ")
    found = (line for line in lines if line.lstrip().removeprefix("ROOT ").startswith(begins))
    return _read(next(found, ""))


def _read(line: str) -> HloOperation:
    match = _OPERATION.search(line)
    if match is None:
        return NOTHING
    operands = [operand.strip(" %") for operand in match[2].split(",") if operand.strip()]
    return HloOperation(match[1], operands, int(match[3] or -1))
