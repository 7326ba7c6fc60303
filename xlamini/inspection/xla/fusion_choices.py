"""Why XLA's GPU compiler fused or did not: the dump of its priority fusion, joined to kernels by labels.

The dump names instructions as they were called when the pass ran, which later passes rename. It is joined to the final
kernels by the labels of the result: a fusion has those of its consumer's.
"""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from xlamini.inspection.xla.facts import XlaKernel
from xlamini.inspection.xla.hlo import labels_of
from xlamini.runtime.hlo.instructions import instruction, unquoted

PASS = "priority-fusion"
"""The pass whose dump this is."""

_STEP = re.compile(r"^fusion_steps \{\n  (\w+) \{\n(.*?)\n  \}\n\}", re.MULTILINE | re.DOTALL)
_FIELD = re.compile(r'^    (\w+): ("(?:[^"\\]|\\.)*"|\S+)$', re.MULTILINE)
_LONGEST_REASON = 200


class FusionChoice(NamedTuple):
    """What the pass last said of an instruction as a producer."""

    type: str
    reason: str | None
    fused: float | None
    unfused: float | None


class FusionChoices:
    """The last choice about each instruction, by the first of its labels.

    Args:
      dump: the text of the dump.
      before: the program before the pass.

    Raises ValueError for a text that is no such dump.
    """

    def __init__(self, dump: str, before: str):
        steps = list(_steps(dump))
        if not steps:
            raise ValueError("the dump of priority fusion has no steps")
        known = {found.name: found for line in before.split("\n") if (found := instruction(line)) is not None}
        roots: dict[str, str] = {}
        last: dict[str, FusionChoice] = {}
        for kind, fields in steps:
            producer = fields.get("producer_name", "")
            root = roots.get(producer, producer)
            if kind == "fusion":
                consumer = fields.get("consumer_name", "")
                roots[fields.get("fusion_name", "")] = roots.get(consumer, consumer)
            elif root in known:
                last[root] = _choice(kind, fields, last.get(root, FusionChoice(known[root].type, None, None, None)))
        self._by_label: dict[str, list[FusionChoice]] = {}
        for name, choice in last.items():
            for label in labels_of(known[name].op_name)[:1]:
                self._by_label.setdefault(label, []).append(choice)

    def between(self, producer: XlaKernel, consumers: Sequence[XlaKernel]) -> tuple[str | None, float | None]:
        """Why a kernel was not fused into those that read it, and the seconds that it would save, as XLA estimates."""
        found = self._by_label.get(producer.labels[0], []) if producer.labels else []
        same_type = [choice for choice in found if choice.type == producer.type]
        if not found or not consumers:
            return None, None
        choice = (same_type or found)[-1]
        if choice.fused is None or choice.unfused is None:
            return choice.reason, None
        gain = (choice.unfused - choice.fused) * 1e-6
        if choice.reason is None and gain <= 0:
            return f"fused it would take {choice.fused:.3g} us, apart it takes {choice.unfused:.3g} us", gain
        return choice.reason, gain


def _steps(dump: str) -> Iterator[tuple[str, dict[str, str]]]:
    for step in _STEP.finditer(dump):
        fields = {name: unquoted(text) if text[0] == '"' else text for name, text in _FIELD.findall(step[2])}
        yield step[1], fields


def _choice(kind: str, fields: dict[str, str], before: FusionChoice) -> FusionChoice:
    if kind == "update_priority":
        return before._replace(fused=float(fields["us_fused"]), unfused=float(fields["us_unfused"]))
    reason = fields.get("reason")
    return before._replace(reason=reason if reason is None else _short(reason))


def _short(reason: str) -> str:
    """A reason without the text of an instruction that follows it."""
    reason = " ".join(reason.split("for HLO")[0].split())
    return reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]}…"
