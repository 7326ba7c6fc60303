"""monitoring: events reach their listeners; what is traced, lowered and compiled is recorded, and calls are not."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from xlamini import enable_x64, jit, monitoring, numpy as jnp
from xlamini.core.monitoring import CACHE_ASKED, CACHE_HIT, CACHE_MISS, COMPILED, LOWERED, TRACED


@pytest.fixture(autouse=True)
def cleared() -> Iterator[None]:
    yield
    monitoring.clear_event_listeners()


def test_events_reach_the_listeners_of_their_kind() -> None:
    found: list[Any] = []

    def listener(*values: Any, **metadata: Any) -> None:
        found.append((*values, metadata))

    kinds = {
        "event": (monitoring.register_event_listener, monitoring.unregister_event_listener),
        "duration": (
            monitoring.register_event_duration_secs_listener, monitoring.unregister_event_duration_listener
        ),
        "span": (monitoring.register_event_time_span_listener, monitoring.unregister_event_time_span_listener),
        "scalar": (monitoring.register_scalar_listener, monitoring.unregister_scalar_listener),
    }  # fmt: skip
    expected = {
        "event": ("/e", {"step": 1}), "duration": ("/d", 0.5, {}), "span": ("/s", 1.0, 2.0, {}), "scalar": ("/n", 3, {})
    }  # fmt: skip
    for kind, (register, unregister) in kinds.items():
        register(listener)
        monitoring.record_event("/e", step=1)
        monitoring.record_event_duration_secs("/d", 0.5)
        monitoring.record_event_time_span("/s", 1.0, 2.0)
        monitoring.record_scalar("/n", 3)
        unregister(listener)
        monitoring.record_event("/e")
        assert found == [expected[kind]]
        found.clear()
        with pytest.raises(ValueError, match="is not registered for this kind of event"):
            unregister(listener)
    with pytest.raises(TypeError, match="a listener must be a function, got 3"):
        monitoring.register_event_listener(3)  # type: ignore[arg-type]


def test_compiling_is_recorded_and_calls_are_not() -> None:
    seconds: dict[str, float] = {}
    names: list[str] = []

    def listener(event: str, duration: float, fun_name: str = "") -> None:
        seconds[event] = duration
        names.append(fun_name)

    def measured(x: Any) -> Any:
        return jnp.sin(x) * 3.25

    monitoring.register_event_duration_secs_listener(listener)
    run = jit(measured)
    run(1.0)
    assert seconds.keys() == {TRACED, LOWERED, COMPILED} and all(0 <= s < 60 for s in seconds.values())
    assert names == 3 * ["measured"]
    seconds.clear()
    run(2.0)
    assert not seconds
    with enable_x64(True):
        run(jnp.arange(2))
    assert TRACED in seconds


@pytest.mark.full
def test_answers_of_the_persistent_cache_are_recorded(tmp_path: Any) -> None:
    import xlamini

    events: list[str] = []
    monitoring.register_event_listener(lambda event, **metadata: events.append(event))
    before = xlamini.config.compilation_cache_dir
    xlamini.config.update("compilation_cache_dir", str(tmp_path))
    try:
        for _ in range(2):
            jit(lambda x: x * 7.5 + 1.25)(2.0)
            xlamini.clear_caches()
    finally:
        xlamini.config.update("compilation_cache_dir", before)
    assert events == [CACHE_ASKED, CACHE_MISS, CACHE_ASKED, CACHE_HIT]
