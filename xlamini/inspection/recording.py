"""Recording: the programs that rewrites take and give while a function is traced and lowered.

A rewrite inside of another one is part of it. What the rewrites of an inner jaxpr give (a loop's body, a branch) shows
in the program around it, so only programs of their own are kept.
"""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

from xlamini.core import Jaxpr
from xlamini.core.events import REWRITTEN, Phase, subscribe
from xlamini.core.flags import config
from xlamini.core.program.call_graph import call_graph


class RecordedRewrite(NamedTuple):
    """One rewrite: its name, the program that it took, those that it gave, and its seconds."""

    name: str
    taken: Jaxpr
    given: tuple[Jaxpr, ...]
    seconds: float


class Recorder:
    """What a thread's flag `recorder` holds while a program is inspected."""

    def __init__(self) -> None:
        self.rewrites: list[RecordedRewrite] = []
        self._traces: list[tuple[dict[Any, Any], Any]] = []

    def rewritten(self, phase: Phase) -> None:
        """Note what a rewrite took and gave, unless it is part of another one."""
        if not _is_inside(phase):
            fun, jaxpr, result = phase.program
            self.rewrites.append(RecordedRewrite(fun.__name__, jaxpr, _jaxprs(result), phase.seconds))

    def traced(self, traces: dict[Any, Any], key: Any) -> None:
        """Note that a jitted function keeps a trace for this recorder."""
        self._traces.append((traces, key))

    def forget(self) -> None:
        """Drop the traces that were made for this recorder."""
        for traces, key in self._traces:
            traces.pop(key, None)

    def of_programs(self, programs: Sequence[Jaxpr]) -> list[RecordedRewrite]:
        """The rewrites of whole programs that changed something, in their order; `programs` are those lowered."""
        changing = [r for r in self.rewrites if r.taken.name and any(made is not r.taken for made in r.given)]
        every = [*programs, *(program for r in changing for program in (r.taken, *r.given))]
        inner = {id(jaxpr) for program in every for jaxpr in islice(call_graph(program), 1, None)}
        return [r for r in changing if inner.isdisjoint(map(id, (r.taken, *r.given)))]


@contextmanager
def recording(recorder: Recorder) -> Iterator[None]:
    """Tell the recorder of this thread's rewrites. What was traced before is traced anew."""
    before = config.recorder.swap_local(recorder)
    try:
        yield
    finally:
        config.recorder.set_local(before)
        recorder.forget()


subscribe(lambda phase: config.recorder.value.rewritten(phase), REWRITTEN, under=config.recorder)


def _is_inside(phase: Phase) -> bool:
    outer = phase.outer
    while outer is not None and outer.kind != REWRITTEN:
        outer = outer.outer
    return outer is not None


def _jaxprs(result: Any) -> tuple[Jaxpr, ...]:
    return tuple(x for x in (result if isinstance(result, tuple) else (result,)) if isinstance(x, Jaxpr))
