"""What a GPU's compiler made of a kernel: its PTX, counts of instructions, threads, registers and shared memory."""
from __future__ import annotations

import re
from typing import NamedTuple

PATTERNS = {
    "wgmma": r"\bwgmma\.mma_async",
    "tcgen05.mma": r"\btcgen05\.mma",
    "mma.sync": r"\bmma\.sync",
    "cp.async": r"\bcp\.async\.(?:c[ag]|bulk)\b",
    "ld.global": r"\bld\.global",
    "st.global": r"\bst\.global",
    "atom": r"\b(?:atom|red)\.",
    "shfl": r"\bshfl\.",
    "bar.sync": r"\bbar\.sync",
    "ex2": r"\bex2\.approx",
}
"""The instructions that are counted; the first three are products of tiles."""
_COUNTED = {name: re.compile(pattern) for name, pattern in PATTERNS.items()}
_ENTRY = re.compile(r"\.entry ([\w$.]+)\(")
_THREADS = re.compile(r"\.reqntid (\d+)(?:, (\d+))?(?:, (\d+))?|\.maxntid (\d+)")
_INSTRUCTION = re.compile(r"^\t(?:@!?%p\d+ )?[a-z][\w.:]*[\s;]", re.MULTILINE)
_TARGET = re.compile(r"^\.target (\w+)", re.MULTILINE)
_LAUNCH = re.compile(r"grid: \[[\d, ]*\] threads: \[(\d+)[\d, ]*\]\s+shared_memory: (\d+) bytes")


class Registers(NamedTuple):
    """The registers of a thread, and the bytes that it spills: those written, and those read back."""

    count: int
    spill_stores: int
    spill_loads: int


class GpuCode(NamedTuple):
    """A kernel as a GPU runs it."""

    ptx: str
    counts: dict[str, int]
    """How often instructions stand in the PTX, by the names of `PATTERNS`; a loop's body counts once."""
    instructions: int
    threads: int | None
    """The threads of a program."""
    shared: int | None
    """Bytes of shared memory of a program; None if the dump does not say."""
    registers: Registers | None
    """None where NVIDIA's assembler `ptxas` is not installed."""

    @property
    def spills(self) -> int | None:
        """Bytes that a thread spills, written and read."""
        return None if self.registers is None else self.registers.spill_stores + self.registers.spill_loads


def gpu_code(ptx: str, launches: str = "", registers: Registers | None = None) -> GpuCode:
    """The code of a kernel from its PTX; `launches` is XLA's list of what the program starts."""
    counts = {name: len(pattern.findall(ptx)) for name, pattern in _COUNTED.items()}
    launch = _LAUNCH.search(launches)
    threads = int(launch[1]) if launch else _threads(ptx)
    shared = int(launch[2]) if launch else None
    return GpuCode(ptx, counts, len(_INSTRUCTION.findall(ptx)), threads, shared, registers)


def has_entry(ptx: str) -> bool:
    """Whether a PTX text has a kernel: XLA writes one with constants alone besides."""
    return _ENTRY.search(ptx) is not None


def architecture(ptx: str) -> str | None:
    """The architecture that a PTX text is for, such as sm_90a."""
    found = _TARGET.search(ptx)
    return found[1] if found else None


def _threads(ptx: str) -> int | None:
    found = _THREADS.search(ptx)
    if found is None:
        return None
    sizes = [int(size) for size in found.groups() if size]
    return sizes[0] * sizes[1] * sizes[2] if len(sizes) == 3 else sizes[0]
