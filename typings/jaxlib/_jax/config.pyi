"""Cells of configuration that the C++ dispatch path reads."""

from collections.abc import Callable
from typing import Any

class Config(Any):
    def __init__(
        self, name: str, value: Any, *, include_in_jit_key: bool = ..., include_in_trace_context: bool = ...
    ) -> None: ...

trace_context: Callable[[], tuple[Any, ...]]
trace_context_names: Callable[[], tuple[str, ...]]
