"""Memory check for CPU programs: a program that cannot fit is refused before it runs.

On a CPU a failed allocation shows only after the call, and reading the resulting array aborts the process.
"""

from __future__ import annotations

import functools
import os

from jaxlib import _jax

from xlamini.runtime.execution.executable import CompiledModule


@functools.cache
def total_bytes() -> int | None:
    """The machine's memory with its swap space; None if the system does not report it."""
    try:
        with open("/proc/meminfo", encoding="utf-8") as lines:
            kilobytes = {name: int(rest.split()[0]) for name, rest in (line.split(":", 1) for line in lines)}
        return 1024 * (kilobytes["MemTotal"] + kilobytes["SwapTotal"])
    except (OSError, ValueError, KeyError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else None


def memory_needed(executable: CompiledModule) -> int:
    """The bytes of a program's results and temporary values."""
    needed = executable.memory_needed
    if needed is None:
        stats = executable.memory_analysis()
        needed = stats.output_size_in_bytes + stats.temp_size_in_bytes - stats.alias_size_in_bytes
        executable.memory_needed = needed
    return needed


_AMPLE = 8


def check_fits_in_memory(executable: CompiledModule, platform: str, name: str, bytes_made: int) -> None:
    """Raise JaxRuntimeError, as XLA does, for a CPU program whose results and temporaries exceed the memory.

    XLA's memory analysis runs only if the sum of all the program's values comes near that limit.
    """
    total = total_bytes()
    if platform != "cpu" or total is None or bytes_made * _AMPLE < total:
        return
    needed = memory_needed(executable)
    if needed > total:
        raise _jax.JaxRuntimeError(
            f"RESOURCE_EXHAUSTED: {name} needs {shown_bytes(needed)} for its results and temporary values, but the "
            f"machine has {shown_bytes(total)}; make the shapes smaller, or compute in parts; "
            "xlamini.jit(f).memory_plan(...) says what is held"
        )


def shown_bytes(count: float) -> str:
    """A number of bytes with the unit that suits it."""
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} PiB"
