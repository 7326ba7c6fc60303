"""The shell commands and the programs that pages, docstrings and help texts show."""
from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests.support.paths import ROOT

_TOOLS = "python3?|pip|pytest|ruff|lint-imports|pyright|git|mpirun|srun"
_COMMAND = re.compile(rf"(?:[A-Z_]+=\S+ )*(?:\S*/bin/)?(?:{_TOOLS}) [^=\s].*")
_SPAN = re.compile(r"`([^`]+)`")
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def documents() -> dict[str, str]:
    """The text of each page, and of each source file of the package, by its path."""
    kinds = ("*.md", "docs/**/*.md", "xlamini/**/*.md", "xlamini/**/*.py")
    pages = [path for kind in kinds for path in ROOT.glob(kind)]
    return {str(path.relative_to(ROOT)): path.read_text() for path in sorted(pages) if path.name != "CHANGELOG.md"}


def commands() -> dict[str, str]:
    """Each documented command with the first file that has it."""
    found: dict[str, str] = {}
    for name, text in documents().items():
        for command in _commands_in(text):
            if Path(name).suffix == ".md" or "xlamini" in command:
                found.setdefault(command, name)
    return found


def _commands_in(text: str) -> Iterator[str]:
    """Commands that stand on a line of their own, after `$` or alone, or in backquotes, perhaps over two lines."""
    for language, body in [*_FENCE.findall(text), ("", _FENCE.sub("", text))]:
        indented = [line for line in body.splitlines() if language or line.startswith("    ")]
        spans = [] if language else _SPAN.findall(body)
        for line in [*(line.strip().removeprefix("$ ") for line in indented), *(" ".join(s.split()) for s in spans)]:
            if _COMMAND.fullmatch(line):
                yield re.sub(r"\s+#\s.*", "", line).replace(".venv/bin/", "")


def programs() -> dict[str, str]:
    """The programs on pages, those without a prompt, by the page and their number in it."""
    return {
        f"{name} {i}": body
        for name, text in documents().items()
        if Path(name).suffix == ".md"
        for i, body in enumerate(body for language, body in _FENCE.findall(text) if language == "python")
    }
