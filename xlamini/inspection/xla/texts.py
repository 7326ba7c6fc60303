"""HLO texts as they are shown: one short line for each instruction, without metadata, with uncommon layouts only."""
from __future__ import annotations

import re

from xlamini.inspection.xla.examined import ProgramText
from xlamini.inspection.xla.hlo import Module, labels_of
from xlamini.inspection.xla.labels import Labelling
from xlamini.runtime.hlo.instructions import op_name_in

_CUTS = (", metadata={", ", backend_config=", ", sharding={", ", frontend_attributes=", ", origin={")
_LAYOUT = re.compile(r"\]\{([\d,]*)(?::([^}]*))?\}")
_SPACE = re.compile(r"S\(\d+\)")
_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
_COMMENT = re.compile(r"/\*index=\d+\*/")

_layouts: dict[str, str] = {}


def shortened(line: str) -> str:
    """An HLO line as it is shown.

    >>> shortened('  %a.1 = f32[8,4]{1,0} tanh(%b), metadata={op_name="jit(f)/tanh#e0"}')
    '  a.1 = f32[8,4] tanh(b)'
    """
    head = _HEAD.match(line)
    if head is not None:
        return f"{head[1] or ''}{head[2]} {{"
    for cut in _CUTS:
        end = line.find(cut)
        if end >= 0:
            line = line[:end]
    line = _LAYOUT.sub(_layout, line.replace("%", ""))
    return _COMMENT.sub("", line) if "/*" in line else line


def _layout(match: re.Match[str]) -> str:
    """A layout that is not the usual one, row by row in the device's memory; tiles are left out."""
    text = match[0]
    found = _layouts.get(text)
    if found is None:
        order, more = match.groups()
        usual = [int(n) for n in order.split(",") if n]
        space = "".join(_SPACE.findall(more or ""))
        shown = order if usual != sorted(usual, reverse=True) else ""
        inside = shown + (f":{space}" if space else "")
        found = _layouts[text] = f"]{{{inside}}}" if inside else "]"
    return found


def is_instruction(line: str) -> bool:
    """Whether a line of HLO text is inside a computation, where each has one instruction."""
    return line.startswith("  ")


def labels_in(line: str) -> tuple[str, ...]:
    """The labels in the op name of an HLO line."""
    return labels_of(op_name_in(line)) if "op_name=" in line else ()


def program_text(title: str, module: Module, labelling: Labelling) -> ProgramText:
    """A module as it is shown, from its first computation on."""
    first = min(map(module.start, module.computations), default=0)
    lines = module.lines[first:]
    labels = labelling.of_lines(len(module.lines))[first:]
    return ProgramText(title, tuple(map(shortened, lines)), tuple(labels), sum(map(is_instruction, lines)))
