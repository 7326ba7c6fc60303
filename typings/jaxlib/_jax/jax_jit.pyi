"""State of the C++ dispatch path."""

from typing import Any

def __getattr__(name: str) -> Any: ...
