"""Allocator options of a GPU's PJRT client.

xlamini's flags take precedence over the environment variables that JAX reads, so that scripts for JAX work unchanged.
"""
from __future__ import annotations

import os
from typing import Any

from xlamini.core import PlatformError, config

_OFF = ("false", "False", "0")


def gpu_options(name: str) -> dict[str, Any]:
    """The client options of a GPU plugin; options that nobody has set are left out."""
    options = {
        "allocator": allocator(),
        "memory_fraction": memory_fraction(),
        "preallocate": preallocate(),
        "collective_memory_size": _collective_memory(),
    }
    set_options = {option: value for option, value in options.items() if value is not None}
    return {"platform_name": "cuda" if name == "cuda" else "ROCM", **set_options}


def allocator() -> str:
    """The name of the device's memory allocator."""
    text = os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR", "default").lower()
    name = config.allocator.value or text
    if name not in config.ALLOCATORS:
        raise PlatformError(f"XLA_PYTHON_CLIENT_ALLOCATOR={text!r} must be one of {', '.join(config.ALLOCATORS)}")
    return name


def memory_fraction() -> float | None:
    """The fraction of the device's memory that may be allocated; None for the plugin's default, three quarters."""
    if config.memory_fraction.value is not None:
        return config.memory_fraction.value
    for variable in ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"):
        if os.environ.get(variable):
            return _number(variable, float)
    return None


def preallocate() -> bool | None:
    """Whether that fraction is allocated at start; None for the plugin's default, which preallocates."""
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
