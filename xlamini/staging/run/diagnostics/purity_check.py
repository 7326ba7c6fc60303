"""Values that a function read beside its arguments, and that have changed since it was traced; flag `debug_purity`.

A compiled program has the values of the trace. So a global, a variable of an enclosing function or an attribute that
changes later makes no difference to it, though the code looks as if it did.
"""
from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xlamini.core import user_stacklevel
from xlamini.core.errors import StaleValueWarning
from xlamini.core.errors.frames import is_own
from xlamini.staging.run.diagnostics.recreated_functions import short
from xlamini.staging.trace.arguments import parameter_names
from xlamini.staging.trace.reachable_state import Reached, argument, fingerprint, is_written, parts_read, reached_from
from xlamini.staging.trace.tracing import Trace

_CONTAINERS = (list, tuple, dict, set, frozenset)
_LONG = 60


class _Read(NamedTuple):
    """A value at the time of the trace: what it held, and the value itself, so that no other takes its identity."""

    reached: Reached
    fingerprint: Any
    text: str
    value: Any


def with_values_outside(traced: Trace, fun: Callable[..., Any], statics: Any) -> Trace:
    """A new trace, with what the user's function can have read beside its dynamic arguments."""
    if is_own(fun):
        return traced
    reached = [*reached_from(fun), *_static_arguments(fun, statics)]
    return traced._replace(outside=[_noted(part) for r in reached for part in parts_read(r)])


def _noted(part: Reached) -> _Read:
    value = part.read()
    return _Read(part, fingerprint(value), _text(value), value)


def _static_arguments(fun: Callable[..., Any], statics: Any) -> list[Reached]:
    parameter, given = parameter_names(fun), () if statics is None else (*statics.by_num, *statics.by_name)
    return [argument(where if isinstance(where, str) else parameter(where), value, fun) for where, value in given]


def warn_of_changes(name: str, outside: Sequence[_Read]) -> None:
    """Warn of each value that is no longer what it was at the trace."""
    for read in outside:
        now = read.reached.read()
        if is_written(read.fingerprint, fingerprint(now)):
            warnings.warn(f"{name}: {_changed(read, _text(now))}", StaleValueWarning, user_stacklevel())


def _changed(read: _Read, now: str) -> str:
    what, file, line = read.reached[:3]
    other = f"is another {now} now" if now == read.text else f"is {now} now"
    return (
        f"{what} was {read.text} when the function was traced, and {other}, but the compiled program goes on with the "
        f"former; {file}:{line} reads it. Pass {what} as an argument, or call clear_cache() after a change"
    )


def _text(value: Any) -> str:
    text = " ".join(repr(value).split()) if isinstance(value, _CONTAINERS) else short(value)
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"
