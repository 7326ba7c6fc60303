"""Fixtures of the tests of a program's life."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from xlamini import monitoring

COMPILED = "/jax/core/compile/backend_compile_duration"


@pytest.fixture
def compiled() -> Iterator[list[str]]:
    """The names of the programs that are compiled."""
    names: list[str] = []

    def listen(event: str, seconds: float, **about: Any) -> None:
        if event == COMPILED:
            names.append(str(about["fun_name"]))

    monitoring.register_event_duration_secs_listener(listen)
    yield names
    monitoring.unregister_event_duration_listener(listen)
