"""How a GPU's memory is taken: what the plugin is told when its client is made.

xlamini's flags come first, then the environment variables that JAX reads, so that a script for one serves the other.
"""
from __future__ import annotations

import os
from typing import Any

from xlamini.core import config
from xlamini.core.errors import PlatformError

_OFF = ("false", "False", "0")


def gpu_options(name: str) -> dict[str, Any]:
    """The options of a GPU's plugin, those left out that nobody has set."""
    asked = {
        "allocator": allocator(),
        "memory_fraction": memory_fraction(),
        "preallocate": preallocate(),
        "collective_memory_size": _collective_memory(),
    }
    given = {option: value for option, value in asked.items() if value is not None}
    return {"platform_name": "cuda" if name == "cuda" else "ROCM", **given}


def allocator() -> str:
    """Who hands out the device's memory."""
    text = os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR", "default").lower()
    chosen = config.allocator.value or text
    if chosen not in config.ALLOCATORS:
        raise PlatformError(f"XLA_PYTHON_CLIENT_ALLOCATOR={text!r} must be one of {', '.join(config.ALLOCATORS)}")
    return chosen


def memory_fraction() -> float | None:
    """How much of the device's memory may be taken; None for the plugin's own share, three quarters."""
    if config.memory_fraction.value is not None:
        return config.memory_fraction.value
    for variable in ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"):
        if os.environ.get(variable):
            return _number(variable, float)
    return None


def preallocate() -> bool | None:
    """Whether that share is taken at once; None for the plugin's own way, which takes it."""
    if config.preallocate.value is not None:
        return config.preallocate.value
    text = os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE")
    return text not in _OFF if text else None


def _collective_memory() -> int | None:
    variable = "XLA_PYTHON_CLIENT_COLLECTIVE_MEM_SIZE_MB"
    return _number(variable, int) << 20 if os.environ.get(variable) else None


def _number(variable: str, kind: Any) -> Any:
    try:
        return kind(os.environ[variable])
    except ValueError:
        raise PlatformError(f"{variable}={os.environ[variable]!r} must be a number") from None
