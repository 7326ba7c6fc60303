"""The assembly of a program's kernels as one text, with the labels of the kernel that each function belongs to."""
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from xlamini.inspection.xla.facts import ProgramText, XlaKernel

_FUNCTION = re.compile(r'(?:\.visible \.entry|^define .*?@)\s*"?([\w.$\-]+)"?\(', re.MULTILINE)
_NOISE = re.compile(
    r"^(?:; ModuleID|source_filename|target |attributes #|!\d+ =|!llvm|//|\.version|\.target|\.address_size)"
)
_MOST_LINES = 12_000


def assembly_of(title: str, texts: Sequence[str], kernels: Sequence[XlaKernel]) -> ProgramText:
    """The functions of all texts in the order of the kernels; what is longer than 12,000 lines is cut, and says so.

    Raises ValueError if the texts have no function.
    """
    by_function = {_plain(kernel.name): (i, kernel.labels) for i, kernel in reversed(list(enumerate(kernels)))}
    parts = []
    for text in texts:
        names = _FUNCTION.findall(text)
        known = [by_function[_plain(name)] for name in names if _plain(name) in by_function]
        parts.append((min(known, default=(len(kernels), ())), bool(names), text))
    if not any(has_function for _, has_function, _ in parts):
        raise ValueError(f"the {title} of the dump has no function")
    parts.sort(key=lambda part: part[0][0])
    lines, labels = list[str](), list[tuple[str, ...]]()
    for (_, found), _, text in parts:
        shown = _code(text.split("\n"))
        lines += shown
        labels += [found] * len(shown)
    if len(lines) > _MOST_LINES:
        note = f"… {len(lines) - _MOST_LINES} more lines are left out"
        lines, labels = [*lines[:_MOST_LINES], note], [*labels[:_MOST_LINES], ()]
    return ProgramText(title, tuple(lines), tuple(labels), len(parts))


def _code(lines: Iterable[str]) -> list[str]:
    """Lines without headers and metadata; of several empty ones one is left."""
    found: list[str] = []
    for line in lines:
        if not _NOISE.match(line) and (line.strip() or (found and found[-1])):
            found.append(line.replace("\t", "    ").rstrip())
    return found


def _plain(name: str) -> str:
    """A kernel's name as functions are called."""
    return re.sub(r"[^\w]", "_", name)
