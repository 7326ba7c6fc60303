"""What libraries name when they are imported, but cannot use: it raises when it is called or made.

An object that did nothing would be worse: results that depend on it would be wrong without a word.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from xlamini.as_jax.finder import PAGE
from xlamini.core.tracing.one_tracer import ONE_TRACER


def refuse_trace(thing: str) -> NoReturn:
    """TypeError for an object of JAX's stack of traces."""
    raise TypeError(f"{thing} cannot be used: {ONE_TRACER}")


def refuse(name: str, instead: str) -> NoReturn:
    """NotImplementedError for what xlamini does not have."""
    raise NotImplementedError(f"{name} is not in xlamini: {instead}; see {PAGE}")


def refusing(name: str, instead: str) -> Callable[..., NoReturn]:
    """A function that raises NotImplementedError."""
    return lambda *args, **kwargs: refuse(name, instead)


class Trace:
    """The class that JAX's transformations derive from; there are none of it here."""

    def __init__(self, *args: Any, **kwargs: Any):
        refuse_trace(f"{type(self).__qualname__}, a jax.core.Trace,")


class TraceTag:
    """The tag of a `Trace`."""

    def __init__(self) -> None:
        refuse_trace("jax.extend.core.TraceTag")


def take_current_trace() -> NoReturn:
    refuse_trace("take_current_trace")


def set_current_trace(trace: Any, check_leaks: bool = False) -> NoReturn:
    refuse_trace("set_current_trace")
