"""The tracing state of a thread: the active builder and the name scopes."""
from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class _State(threading.local):
    """The builder that equations go to, None for eager execution; and the names of `named_scope`, outermost first."""

    builder: Any = None  # a `Builder`, whose module imports this one
    scope: tuple[str, ...] = ()


state = _State()


@contextmanager
def named_scope(name: str) -> Iterator[None]:
    """Put the equations made inside under `name` in provenance, StableHLO locations and profiles."""
    before, state.scope = state.scope, (*state.scope, name)
    try:
        yield
    finally:
        state.scope = before
