"""Recording: the programs that rewrites take and give while a function is traced and lowered.

A rewrite inside of another one is part of it. What the rewrites of an inner jaxpr give (a loop's body, a branch) shows
in the program around it, so only programs of their own are kept.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, NamedTuple

from xlamini.core import Jaxpr, config
from xlamini.core.call_graph import call_graph


class Rewrite(NamedTuple):
    """One rewrite: its name, the program that it took, those that it gave, and its seconds."""

    name: str
    taken: Jaxpr
    given: tuple[Jaxpr, ...]
    seconds: float


class Recorder:
    """What a thread's flag `recorder` holds while a program is inspected."""

    def __init__(self) -> None:
        self.rewrites: list[Rewrite] = []
        self._depth = 0
        self._traces: list[tuple[dict[Any, Any], Any]] = []

    def around(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """The rewrite, which notes what it takes and gives, unless it is part of another one."""

        def noted(jaxpr: Jaxpr, *options: Any) -> Any:
            start, self._depth = time.perf_counter(), self._depth + 1
            try:
                result = fun(jaxpr, *options)
            finally:
                self._depth -= 1
            if self._depth == 0:
                self.rewrites.append(Rewrite(fun.__name__, jaxpr, _jaxprs(result), time.perf_counter() - start))
            return result

        return noted

    def traced(self, traces: dict[Any, Any], key: Any) -> None:
        """Note that a jitted function keeps a trace for this recorder."""
        self._traces.append((traces, key))

    def forget(self) -> None:
        """Drop the traces that were made for this recorder."""
        for traces, key in self._traces:
            traces.pop(key, None)

    def of_programs(self, programs: Sequence[Jaxpr]) -> list[Rewrite]:
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


def _jaxprs(result: Any) -> tuple[Jaxpr, ...]:
    return tuple(x for x in (result if isinstance(result, tuple) else (result,)) if isinstance(x, Jaxpr))
