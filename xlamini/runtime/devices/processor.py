"""The processor that this process runs on: code compiled for more features than it has would crash."""
from __future__ import annotations

import contextlib
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
"""How the features of x86 begin that a compiler may use; the others are of no concern to programs."""


def cpu(info: str = "/proc/cpuinfo") -> str:
    """The processor's model and a digest of its features.

    Where the system does not tell, the machine's name: what is stored there is not used on other machines.
    """
    known = _read(info)
    found = " ".join(sorted(" ".join(known.get(name, "") for name in (_X86, _ARM)).split()))
    if not found:
        return f"{platform.machine()} of machine {platform.node()}"
    model = " ".join(known[name] for name in _MODEL if name in known)
    digest = hashlib.sha256(found.encode()).hexdigest()[:16]
    return f"{platform.machine()} {model} with features {digest}"


def instruction_sets(info: str = "/proc/cpuinfo") -> list[str]:
    """The features that compiled code may need, sorted; none where the system does not tell."""
    known = _read(info)
    of_x86 = [name for name in known.get(_X86, "").split() if name.startswith(_INSTRUCTIONS)]
    return sorted([*of_x86, *known.get(_ARM, "").split()])


def lacking(machine: str, wanted: Iterable[str]) -> list[str]:
    """What a program needs that was compiled on a `machine` such as `platform.machine()` names, with these features."""
    if machine != platform.machine():
        return [f"instructions of {machine}"]
    return sorted({*wanted} - {*instruction_sets()})


def _read(info: str) -> dict[str, str]:
    known: dict[str, str] = {}
    with contextlib.suppress(OSError), open(info) as lines:
        for line in itertools.takewhile(str.strip, lines):  # the next processors are like the first
            name, _, value = line.partition(":")
            known[name.strip()] = value.strip()
    return known
