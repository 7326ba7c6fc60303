"""Plain text for terminals: columns, bars, sentences that wrap, curves of characters."""
from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence

from xlamini.inspection.units import UNKNOWN

_GAP = "  "
_NARROWEST, _LAST = 12, 24
"""How narrow a column becomes at most, and the last one before the others do."""
_EIGHTHS = " ▁▂▃▄▅▆▇█"


def columns(
    head: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[int] = (), width: int | None = None
) -> list[str]:
    """The lines of a table; columns whose numbers are in `right` align there, and those that say nothing are left out.

    Where the table exceeds `width`, its last column and then its widest are made narrower; an ellipsis shows what is
    cut.

    >>> print(*columns(["what", "bytes"], [["a", "10"], ["long name", "2000"]], right=[1]), sep="|")
    what       bytes|a             10|long name   2000
    """
    kept = [i for i in range(len(head)) if not rows or any(row[i] not in ("", UNKNOWN) for row in rows)]
    table = [[plain(row[i]) for i in kept] for row in (head, *rows)]
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    if width is not None:
        widths = _narrowed(widths, width - len(_GAP) * (len(widths) - 1))
    aligned = [place for place, i in enumerate(kept) if i in right]
    return [cut(_line(row, widths, aligned), width) for row in table]


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    most: int,
    right: Sequence[int] = (),
    width: int | None = None,
    hint: str = "",
) -> list[str]:
    """The lines of a table of the first rows, at most so many, and one that says how many more there are."""
    more = len(rows) - most
    return [*columns(head, rows[:most], right, width), *([f"… and {more} more{hint}"] if more > 0 else ())]


def _narrowed(widths: Sequence[int], room: int) -> list[int]:
    """Widths whose sum fits the room if it can: first the last is made narrower, then the widest."""
    found = [*widths]
    if found:
        found[-1] = max(found[-1] - max(sum(found) - room, 0), min(found[-1], _LAST))
    while sum(found) > room and max(found) > _NARROWEST:
        widest = max(found)
        next_widest = max((w for w in found if w < widest), default=0)
        found[found.index(widest)] = max(widest - (sum(found) - room), next_widest - 1, _NARROWEST)
    return found


def _line(row: Sequence[str], widths: Sequence[int], right: Sequence[int]) -> str:
    cells = [(cut(cell, w), w) for cell, w in zip(row, widths, strict=True)]
    return _GAP.join(cell.rjust(w) if i in right else cell.ljust(w) for i, (cell, w) in enumerate(cells)).rstrip()


def plain(text: str) -> str:
    """A text of the program on one line, without characters that a terminal would act upon."""
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text.expandtabs(4))


def cut(text: str, width: int | None) -> str:
    """The text on one line, with an ellipsis in place of what exceeds the width."""
    text = plain(text)
    return text if width is None or len(text) <= width else text[: max(width - 1, 0)] + "…"


def ending(path: str, width: int) -> str:
    """The last parts of a path that fit the width, behind an ellipsis for those that do not.

    >>> ending("/data/of/the/project/train.py:7", 22)
    '…/project/train.py:7'
    """
    if len(path) <= width:
        return path
    start = path.find("/", len(path) - width + 1)
    return "…" + (path[start:] if start >= 0 else path[len(path) - width + 1 :])


def wrapped(text: str, width: int, indent: str = "") -> list[str]:
    """The lines of a sentence; those after the first are indented further."""
    return textwrap.wrap(plain(text), width, initial_indent=indent, subsequent_indent=indent + "  ") or [""]


def bar(share: float, width: int) -> str:
    """A bar that fills a share of its width.

    >>> bar(0.5, 4)
    '██  '
    """
    filled = round(max(0.0, min(1.0, share)) * width)
    return "█" * filled + " " * (width - filled)


def curve(numbers: Sequence[float], top: float, width: int, height: int) -> list[str]:
    """A filled curve from 0 to `top`, the highest line first; several numbers in one column show as their maximum.

    >>> print(*curve([1, 2, 4], 4, 3, 2), sep="|")
      █|▄██
    """
    peaks = list(_peaks(numbers, width))
    levels = [round(8 * height * peak / top) if top else 0 for peak in peaks]
    return [
        "".join(_EIGHTHS[max(0, min(8, level - 8 * line))] for level in levels).rstrip()
        for line in reversed(range(height))
    ]


def _peaks(numbers: Sequence[float], width: int) -> Iterator[float]:
    """One number for each column: a program shorter than the width is stretched."""
    count = len(numbers)
    columns_shown = min(width, count) if count > width else width // count * count if count else 0
    for i in range(columns_shown):
        first = i * count // columns_shown
        yield max(numbers[first : max(first + 1, (i + 1) * count // columns_shown)])
