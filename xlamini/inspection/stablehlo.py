"""StableHLO as a stage: its lines without locations, each with the label of the equation that it comes from."""
from __future__ import annotations

import re
from typing import NamedTuple

from xlamini.staging.aot.stages import Lowered

_DEFINITION = re.compile(r'^(#loc\d*) = loc\((.*)\)$')
_USE = re.compile(r" loc\((#loc\d*|.*)\)$")
_NAME = re.compile(r'^"((?:[^"\\]|\\.)*)"')


class ModuleText(NamedTuple):
    """The lines of a module, and the operation name of each."""

    lines: list[str]
    names: list[str]
    count: int


def text_of(lowered: Lowered) -> ModuleText:
    """The module of a lowered program."""
    return split(lowered.as_text(debug_info=True))


def split(text: str) -> ModuleText:
    """The lines of a module with debug information; the definitions of locations are left out."""
    found = [match.groups() for match in map(_DEFINITION.match, text.splitlines()) if match]
    names = {location: _name(value) for location, value in found}
    lines, marks = [], []
    for line in text.splitlines():
        if line.startswith("#loc"):
            continue
        use = _USE.search(line)
        lines.append(line[: use.start()] if use else line)
        marks.append(names.get(use[1], _name(use[1])) if use else "")
    return ModuleText(lines, marks, sum(" = " in line for line in lines))


def _name(location: str) -> str:
    match = _NAME.match(location)
    return match[1] if match else ""
