"""Events: who subscribed is told, under a flag only while it is set; phases are measured and belong to calls."""
from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini.core import events
from xlamini.core.events import COMPILED, COMPILING, LOWERED, PREPARED, TRACED, Phase, emit, subscribe, unsubscribe
from xlamini.core.flags.jax_flags import log_compiles

X = np.arange(3, dtype=np.float32)


@pytest.fixture
def told() -> Iterator[list[Any]]:
    found: list[Any] = []

    def listener(event: Any) -> None:
        found.append(event)

    subscribe(listener, PREPARED, LOWERED)
    subscribe(listener, COMPILING, under=log_compiles)
    yield found
    unsubscribe(listener)
    assert listener not in [entry[1] for entries in events._listeners.values() for entry in entries]


def test_listeners_are_told_of_their_kinds(told: list[Any]) -> None:
    emit(PREPARED, "f", 3, 0.5, "call"), emit(TRACED, "f")
    (event,) = told
    assert (event.kind, event.name, event.program, event.seconds, event.call) == (PREPARED, "f", 3, 0.5, "call")


def test_a_flag_is_asked_at_each_event(told: list[Any], caplog: Any) -> None:
    for on in (False, True, False):
        with log_compiles(on):
            emit(COMPILING, str(on))
    assert [event.name for event in told] == ["True"]


class Call:
    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def add(self, phase: Phase) -> None:
        self.seconds[phase.name] = phase.own_seconds


def test_phases_belong_to_the_call_around_them_and_count_without_those_inside(told: list[Any]) -> None:
    call, other = Call(), Call()
    phases = Phase(COMPILED, "outer", call=call), Phase(LOWERED, "inner"), Phase(LOWERED, "of another", call=other)
    outer, inner, innermost = phases
    with outer, inner, innermost:
        pass
    assert [phase.name for phase in told] == ["of another", "inner"]
    assert call.seconds.keys() == {"outer", "inner"} and other.seconds.keys() == {"of another"}
    assert outer.own_seconds == outer.seconds - inner.seconds
    assert inner.own_seconds == inner.seconds - innermost.seconds


def test_a_phase_that_fails_is_not_told_of_and_leaves_nothing_behind(told: list[Any]) -> None:
    call = Call()
    with pytest.raises(ZeroDivisionError), Phase(LOWERED, "failing", call=call):
        1 / 0  # noqa: B018
    with Phase(LOWERED, "next"):
        pass
    assert not call.seconds and [(phase.name, phase.call) for phase in told] == [("next", None)]


def test_a_first_call_reads_no_closure_and_the_third_function_of_a_code_names_what_differs() -> None:
    def run(scale: float) -> Any:
        f = xlamini.jit(lambda x: x * 1117 * scale)
        f(X)
        return f.compilations()[-1].cause

    found = []
    for scale in (1.0, 2.0, 3.0):
        found.append(run(scale))
        gc.collect()
    assert [cause.kind for cause in found] == ["first call", "function identity", "closure"]
    assert found[1].text == "another function with the same code was called before"
    assert found[2].text == "scale is 3.0, before 2.0, in a new function of the same code"
