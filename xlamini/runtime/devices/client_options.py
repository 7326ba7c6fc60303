"""Options of the PJRT clients of plugins: a GPU's memory and visible devices, and what the user adds.

xlamini's flags take precedence over the environment variables that JAX reads, so that scripts for JAX work unchanged.
"""
from __future__ import annotations

import contextlib
import os
from typing import Any

from xlamini.core import PlatformError
from xlamini.core.flags import device_flags

_OFF = ("false", "False", "0")


def gpu_options(name: str) -> dict[str, Any]:
    """The client options of a GPU plugin; options that nobody has set are left out."""
    options = {
        "allocator": allocator(),
        "memory_fraction": memory_fraction(),
        "preallocate": preallocate(),
        "collective_memory_size": _collective_memory(),
        "visible_devices": _visible(name),
    }
    options |= _mock_options()
    set_options = {option: value for option, value in options.items() if value is not None}
    return {"platform_name": "cuda" if name == "cuda" else "ROCM", **set_options}


def user_options() -> dict[str, Any]:
    """The client options in flag `pjrt_client_create_options`; numbers and `true` and `false` are no texts."""
    pairs = (pair.partition(":") for pair in (device_flags.pjrt_client_create_options.value or "").split(";") if pair)
    options = {}
    for name, colon, text in pairs:
        if not colon or not name.strip():
            raise PlatformError(f"flag pjrt_client_create_options takes 'name:value;name:value', not {name + colon!r}")
        options[name.strip()] = _parsed(text.strip())
    return options


def _parsed(text: str) -> bool | int | float | str:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


def _mock_options() -> dict[str, Any]:
    """The options of a client that acts as part of a larger cluster, by flags."""
    topology, processes = device_flags.mock_gpu_topology.value, device_flags.mock_num_gpu_processes.value
    if topology:
        try:
            slices, hosts, _ = map(int, topology.split("x"))
        except ValueError:
            raise PlatformError(f"flag mock_gpu_topology takes '2 x 4 x 8', for example, got {topology!r}") from None
        return {"enable_mock_nccl": True, "num_nodes": slices * hosts, "mock_gpu_topology": topology}
    return {"enable_mock_nccl": True, "num_nodes": processes} if processes else {}


def _visible(name: str) -> list[int] | None:
    """The numbers of the GPUs to use; None for all."""
    flag = device_flags.cuda_visible_devices if name == "cuda" else device_flags.rocm_visible_devices
    if flag.value == "all":
        return None
    try:
        return [int(number) for number in flag.value.split(",")]
    except ValueError:
        raise PlatformError(f"flag {flag.name} takes 'all' or numbers such as '0,2', got {flag.value!r}") from None


def allocator() -> str:
    """The name of the device's memory allocator."""
    text = os.environ.get("XLA_PYTHON_CLIENT_ALLOCATOR", "default").lower()
    name = device_flags.allocator.value or text
    if name not in device_flags.ALLOCATORS:
        raise PlatformError(f"XLA_PYTHON_CLIENT_ALLOCATOR={text!r} must be one of {', '.join(device_flags.ALLOCATORS)}")
    return name


def memory_fraction() -> float | None:
    """The fraction of the device's memory that may be allocated; None for the plugin's default, three quarters."""
    if device_flags.memory_fraction.value is not None:
        return device_flags.memory_fraction.value
    for variable in ("XLA_CLIENT_MEM_FRACTION", "XLA_PYTHON_CLIENT_MEM_FRACTION"):
        if os.environ.get(variable):
            return _number(variable, float)
    return None


def preallocate() -> bool | None:
    """Whether that fraction is allocated at start; None for the plugin's default, which preallocates."""
    if device_flags.preallocate.value is not None:
        return device_flags.preallocate.value
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
