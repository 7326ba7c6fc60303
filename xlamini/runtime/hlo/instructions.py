"""One line of HLO text as an instruction: name, type, opcode, operands, called computations, metadata.

Names and strings in the text may be a user's, so that quotes are respected: what is in a string is never syntax.
"""
from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import NamedTuple

_BEGIN = re.compile(r"\s*(ROOT )?%?([\w.\-]+) = ")
_OPCODE = re.compile(r" ?([a-z][\w\-]*)\(")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[()\[\]{},]')
_OPEN, _CLOSE = "([{", ")]}"
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_COMMENT = re.compile(r"/\*.*?\*/")
_CALLS = re.compile(
    r"\b(?:body|condition|to_apply|calls|select|scatter|true_computation|false_computation|comparator|async_computation)"
    r"=%([\w.\-]+)"
)
_SEVERAL = re.compile(r"\b(?:branch_computations|called_computations|calls)=\{([^{}]*)\}")
_OP_NAME = re.compile(r'\bop_name=("(?:[^"\\]|\\.)*")')
_SOURCE_FILE = re.compile(r'\bsource_file=("(?:[^"\\]|\\.)*")')
_SOURCE_LINE = re.compile(r"\bsource_line=(\d+)")
_FRAME = re.compile(r"\bstack_frame_id=(\d+)")
_CYCLES = re.compile(r'"estimated_cycles":"(\d+)"')
_TARGET = re.compile(r'\bcustom_call_target=("(?:[^"\\]|\\.)*")')
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|([0-7]{1,3})|(.))", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r"}
_NO_OPERANDS = frozenset({"constant", "parameter", "iota"})
_NO_ESTIMATE = 2**62
"""The threshold of valid estimates: XLA writes the maximum int64 where it has none."""


class Instruction(NamedTuple):
    """One instruction; `attributes` is the text behind its operands, and `line` its number in the program's text.

    `value` is what stands in place of the operands of a constant and of a parameter: its elements, its number.
    """

    name: str
    type: str
    opcode: str
    operands: tuple[str, ...]
    attributes: str
    is_root: bool
    line: int = 0
    value: str = ""

    @property
    def called(self) -> tuple[str, ...]:
        """The computations that it calls."""
        if "=%" not in self.attributes and "={%" not in self.attributes:
            return ()
        plain = _STRING.sub('""', self.attributes)
        several = [name.strip(" %") for names in _SEVERAL.findall(plain) for name in names.split(",")]
        return tuple(dict.fromkeys([*_CALLS.findall(plain), *filter(None, several)]))

    @property
    def op_name(self) -> str:
        """The name of the operation that it comes from; "" for none."""
        return _quoted(_OP_NAME, self.attributes)

    @property
    def source(self) -> tuple[str, int] | None:
        """The file and line in its own metadata; None if there are none."""
        file, line = _quoted(_SOURCE_FILE, self.attributes), _SOURCE_LINE.search(self.attributes)
        return (file, int(line[1])) if file and line else None

    @property
    def frame(self) -> int | None:
        """The number of its stack frame in the tables at the head of the text."""
        found = _FRAME.search(self.attributes)
        return int(found[1]) if found else None

    @property
    def cycles(self) -> int | None:
        """The cycles that the TPU compiler estimates; None without an estimate."""
        found = [n for n in map(int, _CYCLES.findall(self.attributes)) if n < _NO_ESTIMATE]
        return sum(found) if found else None

    @property
    def target(self) -> str:
        """The target of a custom call; "" for another instruction."""
        return _quoted(_TARGET, self.attributes)


def instruction(text: str, line: int = 0) -> Instruction | None:
    """The instruction on a line of text; None if there is none."""
    begin = _BEGIN.match(text)
    if begin is None:
        return None
    after_type = _end_of_type(text, begin.end())
    opcode = _OPCODE.match(text, after_type)
    if opcode is None:
        return None
    end = _closing(text, opcode.end())
    inside = text[opcode.end() : end]
    has_operands = opcode[1] not in _NO_OPERANDS
    operands, value = (tuple(_operands(inside)), "") if has_operands else ((), inside)
    of_type = _COMMENT.sub("", text[begin.end() : after_type])
    return Instruction(begin[2], of_type, opcode[1], operands, text[end + 1 :], bool(begin[1]), line, value)


def unquoted(text: str) -> str:
    """The characters that a quoted string in a text stands for."""
    inner = text[1:-1]
    return _ESCAPE.sub(_character, inner) if "\\" in inner else inner


def _character(escape: re.Match[str]) -> str:
    digits, octal, other = escape.groups()
    if digits or octal:
        return chr(int(digits or octal, 16 if digits else 8))
    return _ESCAPED.get(other, other)


def _quoted(pattern: re.Pattern[str], text: str) -> str:
    found = pattern.search(text)
    return unquoted(found[1]) if found else ""


def _end_of_type(text: str, start: int) -> int:
    if not text.startswith("(", start):
        end = text.find(" ", start)
        return len(text) if end < 0 else end
    return _closing(text, start + 1) + 1


def _closing(text: str, start: int) -> int:
    """The position of the bracket that closes the one before `start`."""
    depth = 1
    for token in _TOKEN.finditer(text, start):
        depth += (token[0] in _OPEN) - (token[0] in _CLOSE)
        if not depth:
            return token.start()
    return len(text)


def _operands(inside: str) -> Iterator[str]:
    """The names of the operands between an instruction's parentheses; the text may repeat their types."""
    if not inside:
        return
    depth = start = 0
    for token in _TOKEN.finditer(inside):
        depth += (token[0] in _OPEN) - (token[0] in _CLOSE)
        if token[0] == "," and not depth:
            yield _operand(inside[start : token.start()])
            start = token.end()
    yield _operand(inside[start:])


@functools.lru_cache(4096)
def _operand(text: str) -> str:
    return _COMMENT.sub("", text).rsplit(" ", 1)[-1].lstrip("%")
