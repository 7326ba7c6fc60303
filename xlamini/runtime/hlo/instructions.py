"""One line of HLO text as an instruction: name, type, opcode, operands, called computations, metadata.

Names and strings in the text may be a user's, so that quotes are respected: what is in a string is never syntax.
"""
from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_PLAIN = re.compile(
    r'\s*(ROOT )?%?([\w.\-]+) = ([^\s("]+|\((?:[^()"]|\([^()"]*\))*\)) ([a-z][\w\-]*)\(([^()\[\]{}"]*)\)'
)
"""An instruction whose operands are names alone; others are read bracket by bracket, which takes ten times as long."""
_BEGIN = re.compile(r"\s*(ROOT )?%?([\w.\-]+) = ")
_OPCODE = re.compile(r" ?([a-z][\w\-]*)\(")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[()\[\]{},]')
_BRACKET = re.compile(r'[()\[\]{}"]')
_OPEN, _CLOSE = "([{", ")]}"
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_COMMENT = re.compile(r"/\*.*?\*/")
_CALLS = re.compile(
    r"\b(?:body|condition|to_apply|calls|select|scatter|true_computation|false_computation|comparator|async_computation)"
    r"=%?([\w.\-]+)"
)
_CALL_WORDS = ("calls=", "apply=", "body=", "omputation", "select=", "scatter=", "comparator=")
_SEVERAL = re.compile(r"\b(?:branch_computations|called_computations|calls)=\{([^{}]*)\}")
_OP_NAME = 'op_name="'
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
    """One instruction; `attributes` is the text behind its operands, `called` the computations that it calls, and
    `line` its number in the program's text.

    `value` is what stands in place of the operands of a constant and of a parameter: its elements, its number.
    """

    name: str
    type: str
    opcode: str
    operands: tuple[str, ...]
    attributes: str
    is_root: bool
    called: tuple[str, ...]
    line: int = 0
    value: str = ""

    @property
    def op_name(self) -> str:
        """The name of the operation that it comes from; "" for none."""
        return op_name_in(self.attributes)

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
    plain = _PLAIN.match(text)
    if plain is not None:
        root, name, of_type, opcode, inside = plain.groups()
        return _made(root, name, of_type, opcode, inside, text[plain.end() :], line)
    begin = _BEGIN.match(text)
    if begin is None:
        return None
    after_type = _end_of_type(text, begin.end())
    opening = _OPCODE.match(text, after_type)
    if opening is None:
        return None
    end, start = _closing(text, opening.end()), opening.end()
    of_type, inside = text[begin.end() : after_type], text[start:end]
    return _made(begin[1], begin[2], of_type, opening[1], inside, text[end + 1 :], line)


def _made(
    root: str | None, name: str, of_type: str, opcode: str, inside: str, attributes: str, line: int
) -> Instruction:
    if "/*" in of_type:
        of_type = _COMMENT.sub("", of_type)
    if opcode in _NO_OPERANDS:
        return Instruction(name, of_type, opcode, (), attributes, bool(root), (), line, inside)
    operands = tuple(_operands(inside)) if inside else ()
    return Instruction(name, of_type, opcode, operands, attributes, bool(root), called_in(attributes), line)


def called_in(text: str) -> tuple[str, ...]:
    """The computations that an instruction with this text calls, in order, each once."""
    # A search for words is ten times as fast as one for a pattern, and most lines are long and call nothing.
    for word in _CALL_WORDS:
        if word in text:
            return _called_in(text)
    return ()


def _called_in(text: str) -> tuple[str, ...]:
    plain = _STRING.sub('""', text)
    several = [name.strip(" %") for names in _SEVERAL.findall(plain) for name in names.split(",")]
    return tuple(dict.fromkeys([*_CALLS.findall(plain), *filter(None, several)]))


def op_name_in(line: str) -> str:
    """The op name in the metadata of an instruction's text; "" for none."""
    _, named, rest = line.partition(_OP_NAME)
    if not named:
        return ""
    plain, end, _ = rest.partition('"')
    if end and "\\" not in plain:
        return plain
    found = _STRING.match(f'"{rest}')
    return unquoted(found[0]) if found else ""


def unquoted(text: str) -> str:
    """The characters that a quoted string in a text stands for."""
    inner = text[1:-1]
    if "\\" not in inner:
        return inner
    found = _ESCAPE.sub(_character, inner)
    try:
        return found.encode("latin-1").decode()  # XLA escapes the bytes of UTF-8
    except UnicodeError:
        return found


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
    if not _BRACKET.search(inside):
        yield from map(_operand, inside.split(","))
        return
    depth = start = 0
    for token in _TOKEN.finditer(inside):
        depth += (token[0] in _OPEN) - (token[0] in _CLOSE)
        if token[0] == "," and not depth:
            yield _operand(inside[start : token.start()])
            start = token.end()
    yield _operand(inside[start:])


def _operand(text: str) -> str:
    text = _COMMENT.sub("", text) if "/*" in text else text
    return text.rsplit(" ", 1)[-1].lstrip("%")
