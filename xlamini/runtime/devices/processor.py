"""The host's CPU features, for choices, cache keys and load checks: code compiled for what it lacks would crash."""
from __future__ import annotations

import contextlib
import functools
import hashlib
import itertools
import platform
from collections.abc import Iterable

_MODEL = ("vendor_id", "cpu family", "model", "CPU implementer", "CPU variant", "CPU part")
_X86, _ARM = "flags", "Features"
_INSTRUCTIONS = (
    *("sse", "ssse", "avx", "amx", "fma", "f16c", "bmi", "abm", "popcnt", "movbe", "adx", "cx16"),
    *("aes", "vaes", "pclmul", "vpclmul", "sha_ni", "gfni", "xop", "tbm"),
)
"""Prefixes of the x86 features that a compiler may use; other features do not affect compiled programs."""


def cpu(info: str = "/proc/cpuinfo") -> str:
    """A description of the processor: its model and a digest of its features.

    If the system does not list features, the host's name takes their place, so that no other machine matches.
    """
    fields = _read(info)
    features = " ".join(sorted(" ".join(fields.get(name, "") for name in (_X86, _ARM)).split()))
    if not features:
        return f"{platform.machine()} of machine {platform.node()}"
    model = " ".join(fields[name] for name in _MODEL if name in fields)
    digest = hashlib.sha256(features.encode()).hexdigest()[:16]
    return f"{platform.machine()} {model} with features {digest}"


def instruction_sets(info: str = "/proc/cpuinfo") -> list[str]:
    """The sorted features that compiled code may need; empty if the system does not list them."""
    fields = _read(info)
    of_x86 = [name for name in fields.get(_X86, "").split() if name.startswith(_INSTRUCTIONS)]
    return sorted([*of_x86, *fields.get(_ARM, "").split()])


@functools.cache
def has_bfloat16_units() -> bool:
    """Whether the processor multiplies matrices of bfloat16 in units of their own (Intel's AMX)."""
    return "amx_bf16" in instruction_sets()


def lacking(machine: str, needed: Iterable[str]) -> list[str]:
    """The features that this host lacks for a program compiled for a `machine` (`platform.machine()`) and features."""
    if machine != platform.machine():
        return [f"instructions of {machine}"]
    return sorted({*needed} - {*instruction_sets()})


def _read(info: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    with contextlib.suppress(OSError), open(info, encoding="utf-8") as lines:
        for line in itertools.takewhile(str.strip, lines):  # all cores are taken to equal the first
            name, _, value = line.partition(":")
            fields[name.strip()] = value.strip()
    return fields
