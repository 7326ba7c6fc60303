"""The program after each pass of the compiler, from the files of a dump.

The text of a pass has the lines that it made and those that the next one takes away, each under the first line of its
computation; a line that begins with … stands for lines as before. What a pass did is what it made, beside what is gone
of the text before it. All texts together grow with the changes, not with the program.
"""
from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from xlamini.inspection.xla.facts import HloPass, ProgramText
from xlamini.inspection.xla.texts import INDENT, all_shortened, is_instruction, labels_in, shortened

_FILE = re.compile(r"(?:cl_\d+\.)?(\d{4,})\.(.*?)\.after_(.*?)(?:\.before_(.*))?\.txt")
_START, _END = "pipeline-start", "pipeline-end"
BEFORE = "before the first pass"


class PassFile(NamedTuple):
    """A file of a dump: the program after a pass; the number counts the files."""

    number: int
    pipeline: str
    name: str
    file: str


def pass_file(name: str) -> PassFile | None:
    """What a file's name, without that of its module, says; None if it is not the program after a pass.

    >>> pass_file("0012.simplification.after_dce.before_cse.txt")
    PassFile(number=12, pipeline='simplification', name='dce', file='0012.simplification.after_dce.before_cse.txt')
    """
    found = _FILE.fullmatch(name)
    return PassFile(int(found[1]), found[2], found[3], name) if found else None


class _ProgramState(NamedTuple):
    """The program after a pass: its lines, also as a set, and the numbers of those that are no instructions; the short
    form of those that it made, and of those that go next."""

    name: str
    title: str
    lines: list[str]
    every: frozenset[str]
    outside: list[int]
    made: dict[str, str]
    gone: dict[str, str]

    @property
    def count(self) -> int:
        """The number of instructions."""
        return len(self.lines) - len(self.outside)


def passes_of(files: Iterable[tuple[PassFile, bytes]]) -> tuple[HloPass, ...]:
    """The passes, from the files in the order of their numbers and their contents."""
    return tuple(_passes(files))


def _passes(files: Iterable[tuple[PassFile, bytes]]) -> Iterator[HloPass]:
    last: _ProgramState | None = None
    content, unchanged, is_reordered = b"", list[HloPass](), False
    for about, raw in files:
        if last is None:
            last, content = _state(BEFORE, "HLO before the first pass", raw), raw
            continue
        name = about.pipeline if about.name == _START else about.name
        title = f"{name} (pass {about.number})"
        after = _state(name, title, raw) if raw != content else None
        if after is None or not _compare(last, after):
            if about.name not in (_START, _END):
                unchanged.append(HloPass(name, False, ProgramText(title, (), (), last.count)))
            continue
        yield _shown(last, is_reordered)
        yield from unchanged
        is_reordered = not (last.gone or after.made)
        last, content, unchanged = after, raw, []
    if last is not None:
        yield _shown(last, is_reordered)
        yield from unchanged


def _state(name: str, title: str, raw: bytes) -> _ProgramState:
    lines = raw.decode("utf-8", "replace").split("\n")
    start = next((i for i, line in enumerate(lines) if line.endswith("{") and ") -> " in line), len(lines))
    lines = lines[start:]
    outside = [i for i, line in enumerate(lines) if not line.startswith(INDENT)]
    return _ProgramState(name, title, lines, frozenset(lines), outside, {}, {})


def _compare(before: _ProgramState, after: _ProgramState) -> bool:
    """Whether a pass changed what is shown; marks the lines that it took away and those that it made."""
    gone, made = _as_shown(before.every - after.every), _as_shown(after.every - before.every)
    gone_as_shown, made_as_shown = set(gone.values()), set(made.values())
    before.gone.update((line, short) for line, short in gone.items() if short not in made_as_shown)
    after.made.update((line, short) for line, short in made.items() if short not in gone_as_shown)
    if gone or made:
        return gone_as_shown != made_as_shown
    return before.lines != after.lines


def _as_shown(lines: Iterable[str]) -> dict[str, str]:
    every = list(lines)
    return dict(zip(every, all_shortened(every), strict=True))


def _shown(state: _ProgramState, is_reordered: bool) -> HloPass:
    hunks = [*_hunks(state, ", in another order" * is_reordered)]
    labels = tuple(() if line is None else labels_in(line) for _, line in hunks)
    text = ProgramText(state.title, tuple(shown for shown, _ in hunks), labels, state.count)
    made, gone = (tuple(i for i, (_, line) in enumerate(hunks) if line in part) for part in (state.made, state.gone))
    return HloPass(state.name, True, text, made, gone)


def _hunks(state: _ProgramState, about_the_rest: str) -> Iterator[tuple[str, str | None]]:
    """The lines of the text, each with the line of the program that it stands for, if any."""
    shown = {**state.gone, **state.made}
    changed = [i for i, line in enumerate(state.lines) if line in shown]
    head, skipped, end = "", 0, 0
    for i in sorted({*changed, *state.outside}):  # all between are instructions as before
        line = state.lines[i]
        skipped, end = skipped + i - end, i + 1
        if line in shown:
            if skipped:
                yield f"  … {skipped} lines", None
            if head and is_instruction(line):
                yield shortened(head), None
            head, skipped = "", 0
            yield shown[line], line
        elif line.endswith("{"):
            head = line
    skipped += len(state.lines) - end
    if skipped:
        yield f"  … {skipped} lines{about_the_rest}", None
