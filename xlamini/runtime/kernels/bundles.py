"""What a TPU's compiler made of a kernel: VLIW bundles, one a cycle, by loop; the units they use, spills and memory.

The texts are those that libtpu dumps. A bundle that waits for a copy takes longer than a cycle; that is not in them.
"""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_BUNDLE = re.compile(r"\s*(?:0x[0-9a-f]+|0)\s+(\w\w)?:?\s*:?([\s>]*)\{")
_TRIPS = re.compile(r", (\d+) /\* loop exit test")
_ALLOCATION = re.compile(r"#allocation\d+(?:_spill)? \[.*?space=vmem, size = 0x([0-9a-f]+)")
_FILL, _SPILL = "VLOAD:FILL", "VSTORE:SPILL"


class Loop(NamedTuple):
    """A loop of a kernel, or at depth 0 the code outside of loops."""

    depth: int
    bundles: int
    """Those of the loop itself, without the loops inside."""
    trips: int | None
    """How often it runs in one run of what is around it; None where its end is not a constant."""


class TpuCode(NamedTuple):
    """A kernel as a TPU runs it. The first loop is the grid's, in order, with the copies of blocks."""

    loops: tuple[Loop, ...]
    units: dict[str, int]
    """How many operations each unit has in the program's text: `MATMUL`, `VALU`, `EUP`, `XLU`, …"""
    vmem: int | None
    """Bytes of VMEM: of two buffers for a block, scratch memory, and spills; None if the dump does not say."""

    @property
    def bundles(self) -> tuple[int, ...]:
        """The bundles at each loop depth."""
        depths = range(1 + max((each.depth for each in self.loops), default=0))
        return tuple(sum(each.bundles for each in self.loops if each.depth == d) for d in depths)

    @property
    def spills(self) -> int:
        """The vector registers that are written to memory and read back, in the program's text."""
        return self.units.get(_FILL, 0) + self.units.get(_SPILL, 0)

    @property
    def cycles(self) -> int:
        """The bundles that are run: a branch counts as taken, a loop without a constant end as run once."""
        total, runs = 0, [1]
        for each in self.loops:
            del runs[max(each.depth, 1) :]
            runs.append(runs[-1] * (each.trips or 1))
            total += each.bundles * runs[-1]
        return total


def tpu_code(bundles: str, utilization: str, allocations: str = "") -> TpuCode:
    """The code of a kernel, from the texts of its final bundles, of their use of units, and of its buffers."""
    return TpuCode(_loops(bundles), _units(utilization), _vmem(allocations))


class _BundleReading:
    """The loops that were seen so far; the first one is the code outside of loops."""

    def __init__(self) -> None:
        self.depths, self.bundles, self.trips = [0], [0], {0: 1}
        self.around = [0]
        """The last loop at each depth."""

    def enter(self, depth: int, is_start: bool) -> int:
        """The number of the loop that a bundle of this depth is in.

        Bundles of a loop stand between those of a loop inside, where the compiler overlaps the two.
        """
        if is_start:
            del self.around[depth:]
        while len(self.around) <= depth:
            self.around.append(len(self.depths))
            self.depths.append(len(self.around) - 1)
            self.bundles.append(0)
        return self.around[depth]


def _loops(text: str) -> tuple[Loop, ...]:
    seen, loop = _BundleReading(), 0
    for label, depth, line in _bundles(text):
        if "{}" not in line:  # an empty bundle is written without its depth
            loop = seen.enter(depth, depth > 0 and label == "LB")
        seen.bundles[loop] += 1
        ends = _TRIPS.search(line)
        if ends:
            seen.trips.setdefault(loop, int(ends[1]))
    return tuple(Loop(d, n, seen.trips.get(i)) for i, (d, n) in enumerate(zip(seen.depths, seen.bundles, strict=True)))


def _bundles(text: str) -> Iterator[tuple[str, int, str]]:
    """The label, the loop depth and the line of each bundle."""
    for line in text.splitlines():
        found = _BUNDLE.match(line)
        if found:
            yield found[1] or "", found[2].count(">"), line


def _units(text: str) -> dict[str, int]:
    """The operations of each unit, from a table with a row for each bundle, below one of the units' names."""
    lines = text.splitlines()
    first = next((i for i, line in enumerate(lines) if line.startswith("MATMUL")), None)
    if first is None:
        return {}
    names = [name.strip() for name in lines[first].split(",")]
    start = next((i for i, line in enumerate(lines) if line.startswith("== UTIL")), len(lines))
    rows = [list(map(int, line.split())) for line in lines[start + 1 :] if line[:1].isdigit()]
    return dict(zip(names, map(sum, zip(*rows, strict=True)), strict=False))


def _vmem(text: str) -> int | None:
    sizes = _ALLOCATION.findall(text)
    return sum(int(size, 16) for size in sizes) if sizes else None


def shown_bundles(bundles: Sequence[int]) -> str:
    """Bundles by loop depth, as "16/86"."""
    return "/".join(map(str, bundles))
