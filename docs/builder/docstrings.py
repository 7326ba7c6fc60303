"""Docstrings are written in a plain part of Markdown: `names`, lists, indented code, sessions. Sphinx reads RST."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

from docs.builder.jaxprs import session
from docs.builder.names import is_value
from docs.builder.texts import text

_SPECIAL = re.compile(r"([\\*_|`<>\[\]:])")
_SECTION = re.compile(r"[A-Z][a-z]+:")
_ITEM = re.compile(r"([-*]|\d+\.) ")


def to_rst(lines: list[str]) -> list[str]:
    """The same docstring in reStructuredText.

    >>> to_rst(["Sort `x`:", "", ">>> sort(x)", "[1]"])
    ['Sort ``x``\\\\:', '', '.. code-block:: pycon', '', '   >>> sort(x)', '   [1]', '']
    """
    return [line for block in _blocks(lines) for line in [*_converted(block), ""]]


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Sphinx's event `autodoc-process-docstring`, which changes `lines` in place."""
    if name.rpartition(".")[0] in sys.modules:
        lines[:] = text(name, obj).splitlines()
    elif is_value(obj):
        lines[:] = []
    lines[:] = to_rst(lines)
    if program := session(name, obj):
        lines += ["**As a jaxpr**", "", *_code("pycon", program), ""]


def _blocks(lines: list[str]) -> Iterator[list[str]]:
    """Paragraphs; an indented block goes on over blank lines."""
    block: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            if block and not block[-1].strip() and not line.startswith(" "):
                yield block[:-1]
                block = []
            block.append(line)
        elif block and block[0].startswith(" ") and block[-1].strip():
            block.append(line)
        elif block and block[-1].strip():
            yield block
            block = []
    if block:
        yield block


def _converted(block: list[str]) -> list[str]:
    if any(line.startswith(">>>") for line in block):
        at = next(i for i, line in enumerate(block) if line.startswith(">>>"))
        before = [*_prose(block[:at]), ""] if at else []
        return [*before, *_code("pycon", block[at:])]
    if block[0].startswith("    "):
        return _code("python", block)
    if _SECTION.fullmatch(block[0]) and len(block) > 1:
        return [f"**{block[0][:-1]}**", "", *_prose(_items(block[1:]))]
    return _prose(block)


def _items(block: list[str]) -> list[str]:
    """The entries of a section such as `Args:`, indented by two, as items of a list."""
    return [("- " if re.match(r"  \S", line) else "") + line[2:] for line in block]


def _code(language: str, block: list[str]) -> list[str]:
    margin = min(len(line) - len(line.lstrip()) for line in block if line.strip())
    return [f".. code-block:: {language}", "", *(f"   {line[margin:]}" for line in block)]


def _prose(block: list[str]) -> list[str]:
    """A paragraph or a list, with code in double backticks and everything else escaped."""
    parts = re.split(r"`+([^`]+)`+", "\n".join(block))
    parts[::2] = [_SPECIAL.sub(r"\\\1", text) for text in parts[::2]]
    text = parts[0]
    for code, after in zip(parts[1::2], parts[2::2], strict=True):
        text += f"``{code}``" + ("\\ " if after[:1].isalnum() else "") + after  # as in `Array`s
    return _spaced(text.split("\n"))


def _spaced(lines: list[str]) -> list[str]:
    """A blank line before a list that follows a line of text."""
    spaced: list[str] = []
    for line in lines:
        if _ITEM.match(line) and spaced and spaced[-1] and not _ITEM.match(spaced[-1]) and spaced[-1][0] != " ":
            spaced.append("")
        spaced.append(line)
    return spaced
