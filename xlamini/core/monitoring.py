"""Events for monitoring: listeners, and the events that tracing, lowering and compiling record.

The events of the library have the names that JAX gives them:

    /jax/core/compile/jaxpr_trace_duration              a function is traced, for jit or a derivative (fun_name)
    /jax/core/compile/jaxpr_to_mlir_module_duration     its program is lowered to StableHLO           (fun_name)
    /jax/core/compile/backend_compile_duration          XLA compiles it, or it is read from the disk  (fun_name)
    /jax/compilation_cache/compile_requests_use_cache   the persistent cache is asked
    /jax/compilation_cache/cache_hits, cache_misses     its answer

The first three are durations and time spans. Nothing is recorded, or measured, while there are no listeners, and a call
of a compiled function never records anything.
"""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from xlamini.core import events

Listener = Callable[..., None]

TRACED = "/jax/core/compile/jaxpr_trace_duration"
LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILED = "/jax/core/compile/backend_compile_duration"
CACHE_ASKED = "/jax/compilation_cache/compile_requests_use_cache"
CACHE_HIT, CACHE_MISS = "/jax/compilation_cache/cache_hits", "/jax/compilation_cache/cache_misses"


_DURATIONS = {events.TRACED: TRACED, events.LOWERED: LOWERED, events.COMPILED: COMPILED}
_ANSWERS = {events.FOUND: CACHE_HIT, events.MISSING: CACHE_MISS, events.REFUSED: CACHE_MISS}

listeners: list[tuple[str, Listener]] = []
"""All listeners, with the kind of their events."""


def register_event_listener(callback: Listener) -> None:
    """Call `callback(event, **metadata)` for every event.

    >>> from xlamini import monitoring
    >>> monitoring.register_event_listener(lambda event, **metadata: print(event, metadata))
    >>> monitoring.record_event("/my/event", step=3)
    /my/event {'step': 3}
    >>> monitoring.clear_event_listeners()
    """
    _register("event", callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Call `callback(event, seconds, **metadata)` for every duration.

    >>> from xlamini import monitoring
    >>> monitoring.register_event_duration_secs_listener(lambda event, seconds, **metadata: print(event, metadata))
    >>> _ = xlamini.make_jaxpr(lambda x: x + 1)(1.0)
    /jax/core/compile/jaxpr_trace_duration {'fun_name': '<lambda>'}
    >>> monitoring.clear_event_listeners()
    """
    _register("duration", callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Call `callback(event, start, end, **metadata)` for every time span; both are seconds, as of `time.time()`.

    >>> from xlamini import monitoring
    >>> monitoring.register_event_time_span_listener(lambda event, start, end, **metadata: print(event, end - start))
    >>> monitoring.record_event_time_span("/my/span", 10.0, 12.5)
    /my/span 2.5
    >>> monitoring.clear_event_listeners()
    """
    _register("span", callback)


def register_scalar_listener(callback: Listener) -> None:
    """Call `callback(event, value, **metadata)` for every scalar.

    >>> from xlamini import monitoring
    >>> monitoring.register_scalar_listener(lambda event, value, **metadata: print(event, value, metadata))
    >>> monitoring.record_scalar("/my/loss", 0.25, step=3)
    /my/loss 0.25 {'step': 3}
    >>> monitoring.clear_event_listeners()
    """
    _register("scalar", callback)


def unregister_event_listener(callback: Listener) -> None:
    """Undo `register_event_listener`; ValueError for a function that is not registered.

    >>> seen = []
    >>> def listener(event, **metadata):
    ...     seen.append(event)
    >>> register_event_listener(listener)
    >>> record_event("/my/event")
    >>> unregister_event_listener(listener)
    >>> record_event("/my/event")
    >>> seen
    ['/my/event']
    """
    _unregister("event", callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Undo `register_event_duration_secs_listener`; ValueError for a function that is not registered.

    >>> def listener(event, seconds, **metadata):
    ...     print(event, seconds)
    >>> register_event_duration_secs_listener(listener)
    >>> unregister_event_duration_listener(listener)
    >>> record_event_duration_secs("/my/duration", 0.5)  # nobody listens
    """
    _unregister("duration", callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Undo `register_event_time_span_listener`; ValueError for a function that is not registered.

    >>> def listener(event, start, end, **metadata):
    ...     print(event, start, end)
    >>> register_event_time_span_listener(listener)
    >>> unregister_event_time_span_listener(listener)
    >>> record_event_time_span("/my/span", 10.0, 12.5)  # nobody listens
    """
    _unregister("span", callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Undo `register_scalar_listener`; ValueError for a function that is not registered.

    >>> def listener(event, value, **metadata):
    ...     print(event, value)
    >>> register_scalar_listener(listener)
    >>> unregister_scalar_listener(listener)
    >>> record_scalar("/my/loss", 0.25)  # nobody listens
    """
    _unregister("scalar", callback)


def clear_event_listeners() -> None:
    """Remove the listeners of all kinds.

    >>> register_event_listener(print)
    >>> register_scalar_listener(print)
    >>> clear_event_listeners()
    >>> record_event("/my/event")  # nobody listens
    """
    listeners.clear()
    _follow_library()


def record_event(event: str, **kwargs: str | int) -> None:
    """Report an event to its listeners, with metadata.

    >>> register_event_listener(lambda event, **metadata: print(event, metadata))
    >>> record_event("/my/checkpoint", step=3)
    /my/checkpoint {'step': 3}
    >>> clear_event_listeners()
    """
    _call("event", event, (), kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Report how long something took, in seconds.

    >>> register_event_duration_secs_listener(lambda event, seconds, **metadata: print(event, seconds, metadata))
    >>> record_event_duration_secs("/my/epoch", 2.5, number=1)
    /my/epoch 2.5 {'number': 1}
    >>> clear_event_listeners()
    """
    _call("duration", event, (duration,), kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int) -> None:
    """Report when something began and ended, in seconds, as of `time.time()`.

    >>> register_event_time_span_listener(lambda event, start, end, **metadata: print(event, start, end))
    >>> record_event_time_span("/my/epoch", 10.0, 12.5)
    /my/epoch 10.0 12.5
    >>> clear_event_listeners()
    """
    _call("span", event, (start_time, end_time), kwargs)


def record_scalar(event: str, value: float | int, **kwargs: str | int) -> None:
    """Report a number.

    >>> register_scalar_listener(lambda event, value, **metadata: print(event, value))
    >>> record_scalar("/my/loss", 0.25)
    /my/loss 0.25
    >>> clear_event_listeners()
    """
    _call("scalar", event, (value,), kwargs)


def _report_duration(event: events.Event) -> None:
    """Report the work of the library on a function: its duration, and its time span."""
    name, end = _DURATIONS[event.kind], time.time()
    record_event_duration_secs(name, event.seconds, fun_name=event.name)
    record_event_time_span(name, end - event.seconds, end, fun_name=event.name)


def _report_answer(event: events.Event) -> None:
    record_event(CACHE_ASKED)
    record_event(_ANSWERS[event.kind])


def _follow_library() -> None:
    """Listen to the library's events if, and only if, there are listeners."""
    events.unsubscribe(_report_duration)
    events.unsubscribe(_report_answer)
    if listeners:
        events.subscribe(_report_duration, *_DURATIONS)
        events.subscribe(_report_answer, *_ANSWERS)


def _register(kind: str, callback: Listener) -> None:
    if not callable(callback):
        raise TypeError(f"monitoring: a listener must be a function, got {callback!r}")
    listeners.append((kind, callback))
    _follow_library()


def _unregister(kind: str, callback: Listener) -> None:
    if (kind, callback) not in listeners:
        raise ValueError(f"monitoring: {callback!r} is not registered for this kind of event")
    listeners.remove((kind, callback))
    _follow_library()


def _call(kind: str, event: str, values: tuple[Any, ...], metadata: dict[str, Any]) -> None:
    for registered, listener in list(listeners):
        if registered == kind:
            listener(event, *values, **metadata)
