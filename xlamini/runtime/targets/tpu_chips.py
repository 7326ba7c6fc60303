"""TPU chips and the slices they come in, from Google's public documentation.

A slice is a block of chips, written by its sides: "2x4" for a chip whose interconnect is a 2D torus, "2x2x4" for a 3D
torus.
"""
from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import NamedTuple

Sides = tuple[int, ...]


class Chip(NamedTuple):
    """A kind of TPU chip. Memory in bytes, bandwidth in bytes a second, peaks in operations a second, clock in Hz.

    `scratch` is what of the memory on the chip the compiler uses for values of a program, in bytes.
    """

    name: str
    kind: str
    rank: int
    largest: int
    memory: int
    bandwidth: float
    peaks: Mapping[str, float]
    clock: float
    scratch: int
    options: Mapping[str, str] = {}


MIB, GIB = 2**20, 2**30
_ONE_CORE = {"chip_config_name": "megacore"}  # two cores that work as one device, as on Cloud TPU

CHIPS = {
    chip.name: chip
    for chip in (
        Chip("v4", "TPU v4", 3, 4096, 32 * GIB, 1.228e12, {"bfloat16": 275e12}, 1.05e9, 124 * MIB, _ONE_CORE),
        Chip("v5e", "TPU v5 lite", 2, 256, 16 * GIB, 0.819e12, {"bfloat16": 197e12}, 1.5e9, 112 * MIB),
        Chip("v5p", "TPU v5", 3, 6144, 96 * GIB, 2.765e12, {"bfloat16": 459e12}, 1.75e9, 48 * MIB),
        Chip("v6e", "TPU v6 lite", 2, 256, 32 * GIB, 1.638e12, {"bfloat16": 918e12}, 1.75e9, 96 * MIB),
    )
}
"""The clock is derived from the peak: peak operations divided by the matrix units' operations per cycle.

Memory is the whole; the compiler reserves up to 1.25 GiB of it. For v5p the documentation says 95 GB, the compiler
95.73 GiB. Scratch is the chip's 128 MiB of CMEM (v4) or its 128 (v5p: 64) MiB of VMEM, without what the compiler keeps
for the loops themselves, as its buffer assignments show.
"""

_PLANES = ((1, 1), (2, 2), (2, 4), (4, 4), (4, 8), (8, 8), (8, 16), (16, 16))
_SMALL_SPACES = ((2, 2, 1), (2, 2, 2), (2, 2, 4), (2, 4, 4))
_STEP, _LONGEST_SIDE = 4, 28


def slices(chip: Chip) -> list[Sides]:
    """The slices that a chip comes in, small ones first."""
    if chip.rank == 2:
        return list(_PLANES)
    sides = range(_STEP, _LONGEST_SIDE + 1, _STEP)
    cubes = [s for s in itertools.combinations_with_replacement(sides, 3) if math.prod(s) <= chip.largest]
    return [*_SMALL_SPACES, *sorted(cubes, key=math.prod)]


def nearest(chip: Chip, sides: Sides) -> Sides:
    """The slice nearest to one that does not exist: first by the number of chips, then by shape."""
    count = max(math.prod(sides), 1)

    def distance(known: Sides) -> tuple[float, int]:
        shape = sum(abs(a - b) for a, b in itertools.zip_longest(sorted(known), sorted(sides), fillvalue=1))
        return abs(math.log(math.prod(known) / count)), shape

    return min(slices(chip), key=distance)


def shown(sides: Sides) -> str:
    """The text of a slice: "2x4"."""
    return "x".join(map(str, sides))
