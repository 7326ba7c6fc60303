"""Reading the table of equations of a report: rows of a stage, what uses what, places in the user's files."""
from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

Report = Mapping[str, Any]


class UserLine(NamedTuple):
    """A line of a user's file. The text is "" where the report has no source; two lines that read the same are one."""

    file: str
    function: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{base_name(self.file)}:{self.line}" if self.file else "no line"

    @property
    def key(self) -> tuple[str, str, object]:
        """What is the same for a line in another version of its file: file name, function, text; else the number."""
        return base_name(self.file), self.function, self.text or self.line


NOWHERE = UserLine("", "", 0, "")


def base_name(path: str) -> str:
    """The name of a file without its folders, on any system."""
    return path.replace("\\", "/").rpartition("/")[2]


def place_of(report: Report, row: int | None) -> UserLine:
    """The line that a row comes from; `NOWHERE` for none."""
    if row is None:
        return NOWHERE
    columns = report["equations"]
    return place_in(report, columns["source"][row], columns["line"][row], columns["function"][row])


def place_in(report: Report, source: int | None, line: int | None, function: str | None = None) -> UserLine:
    """The line of a file of the report, with its text if the report has the file's."""
    if source is None or line is None:
        return NOWHERE
    file = report["sources"][source]
    lines = file["lines"] or ()
    text = lines[line - 1].strip() if 0 < line <= len(lines) else ""
    return UserLine(file["file"], function or "", line, text)


def rows_of(report: Report, stage: int | None) -> list[int]:
    """The rows of a stage, in program order."""
    return [row for row, of in enumerate(report["equations"]["stage"]) if of == stage]


def final_rows(report: Report) -> list[int]:
    """The rows of the program that was lowered; none if the report ends before."""
    final = report["final"]
    return [] if final is None else rows_of(report, final)


def users(report: Report, rows: Iterable[int]) -> dict[int, list[int]]:
    """For each row of these that has any: the rows that its results are operands of."""
    found = defaultdict[int, list[int]](list)
    for row in rows:
        for operand in dict.fromkeys(report["equations"]["operands"][row]):
            found[operand].append(row)
    return dict(found)


def type_of(text: str) -> str:
    """The types of an equation's results, from its text.

    >>> type_of("d:f32[4,8] _:i32[] = foo[n=2] c")
    'f32[4,8] i32[]'
    """
    results = text.partition(" = ")[0]
    return " ".join(word.partition(":")[2] for word in results.split() if ":" in word)


def without_texts(before: Report, after: Report) -> tuple[Report, Report]:
    """Both reports without source text if one of them has none, so that their lines have keys of one kind."""
    if all(source["lines"] for report in (before, after) for source in report["sources"] if not source["library"]):
        return before, after
    plain = [{**r, "sources": [{**source, "lines": None} for source in r["sources"]]} for r in (before, after)]
    return plain[0], plain[1]
