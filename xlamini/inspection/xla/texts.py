"""HLO texts as they are shown: one short line for each instruction, without metadata, with uncommon layouts only."""
from __future__ import annotations

import re
from collections.abc import Sequence

from xlamini.core.caching.memo import memoised
from xlamini.inspection.xla.facts import ProgramText
from xlamini.inspection.xla.hlo import Module, labels_of
from xlamini.inspection.xla.labels import Labelling
from xlamini.runtime.hlo.instructions import op_name_in

INDENT = "  "
_HIDDEN = re.compile(r", (?:metadata=\{|backend_config=|sharding=\{|frontend_attributes=|origin=\{).*")
_USUAL_LAYOUT = re.compile(r"\]\{(?:0|1,0|2,1,0|3,2,1,0)?\}")
_LAYOUT = re.compile(r"\]\{([\d,]*)(?::([^}]*))?\}")
_SPACE = re.compile(r"S\(\d+\)")
_HEAD = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\{$")
_COMMENT = re.compile(r"/\*index=\d+\*/")


def shortened(line: str) -> str:
    """An HLO line as it is shown.

    >>> shortened('  %a.1 = f32[8,4]{1,0} tanh(%b), metadata={op_name="jit(f)/tanh#e0"}')
    '  a.1 = f32[8,4] tanh(b)'
    """
    return all_shortened([line])[0]


def all_shortened(lines: Sequence[str]) -> list[str]:
    """HLO lines as they are shown. A pattern replaces in all of them at once, which takes a third of the time."""
    headed = [line if is_instruction(line) else _HEAD.sub(r"\1\2 {", line) for line in lines]
    text = _USUAL_LAYOUT.sub("]", _HIDDEN.sub("", "\n".join(headed)).replace("%", ""))
    return _COMMENT.sub("", _LAYOUT.sub(_layout, text)).split("\n") if lines else []


def _layout(match: re.Match[str]) -> str:
    return _shown_layout(*match.groups())


@memoised("inspection: layouts as shown", 4096)
def _shown_layout(order: str, more: str | None) -> str:
    """A layout that is not the usual one, row by row in the device's main memory; tiles are left out."""
    dimensions = [int(n) for n in order.split(",") if n]
    shown = order if dimensions != sorted(dimensions, reverse=True) else ""
    space = "".join(_SPACE.findall(more or ""))
    inside = shown + (f":{space}" if space else "")
    return f"]{{{inside}}}" if inside else "]"


def is_instruction(line: str) -> bool:
    """Whether a line of HLO text is inside a computation, where each has one instruction."""
    return line.startswith(INDENT)


def labels_in(line: str) -> tuple[str, ...]:
    """The labels in the op name of an HLO line."""
    return labels_of(op_name_in(line)) if "op_name=" in line else ()


def program_text(title: str, module: Module, labelling: Labelling) -> ProgramText:
    """A module as it is shown, from its first computation on."""
    first = min(map(module.start, module.computations), default=0)
    lines = module.lines[first:]
    labels = labelling.of_lines(len(module.lines))[first:]
    return ProgramText(title, tuple(all_shortened(lines)), tuple(labels), sum(map(is_instruction, lines)))
