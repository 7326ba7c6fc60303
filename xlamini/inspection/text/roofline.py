"""The roofline: how near each kernel comes to what the device can compute and move."""
from __future__ import annotations

import math
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from xlamini.inspection.layout import bar
from xlamini.inspection.quantities import Target
from xlamini.inspection.text.view import View, unavailable
from xlamini.inspection.units import shown

ABOUT = (
    "Roofline: a letter for each kernel, by its FLOPs per byte to the right and its FLOPs per second upward, below the "
    "roof of what the device can move (the slope) and compute (the level). Both axes are logarithmic."
)
_HEIGHT = 12


class _Dot(NamedTuple):
    letter: str
    name: str
    intensity: float
    rate: float
    seconds: float


def lines(view: View) -> Iterator[str]:
    yield from view.by_target(_roofline, "roof", "kernels")


def _roofline(view: View, target: Target) -> Iterator[str]:
    roof = target["roof"]
    if not (roof["flops"] > 0 and roof["bandwidth"] > 0):
        yield from view.say(unavailable(target, "xlamini does not know its peaks"))
        return
    dots = _dots(target["kernels"], view.limit)
    yield from view.say(
        f"roof: {shown(roof['flops'], 'count')}FLOP/s, {shown(roof['bandwidth'], 'count')}B/s ({roof['source']})"
    )
    ridge = roof["flops"] / roof["bandwidth"]
    yield from _bound(target["kernels"], ridge, view.width)
    if not dots:
        yield "No kernel has FLOPs, bytes and a time."
        return
    yield from _plot(dots, roof, min(view.width, 100) - 12)
    head = ("", "kernel", "FLOPs per byte", "FLOPs per second", "time")
    rows = [
        [d.letter, d.name, f"{d.intensity:.3g}", shown(d.rate, "count"), shown(d.seconds, "seconds")] for d in dots
    ]
    yield from view.table(head, rows, right=(2, 3, 4))


def _dots(kernels: Sequence[Mapping[str, Any]], limit: int) -> list[_Dot]:
    """The kernels that can be drawn, those that take longest first; as many as there are letters."""
    able = [k for k in kernels if k["flops"] and k["bytes"] and k["seconds"]]
    longest = sorted(able, key=lambda k: -k["seconds"])[: min(limit, len(string.ascii_letters))]
    return [
        _Dot(letter, k["name"], k["flops"] / k["bytes"], k["flops"] / k["seconds"], k["seconds"])
        for letter, k in zip(string.ascii_letters, longest, strict=False)
    ]


def _bound(kernels: Sequence[Mapping[str, Any]], ridge: float, width: int) -> Iterator[str]:
    """The share of the time in kernels that memory limits, and in those that computing limits."""
    timed = [k for k in kernels if k["seconds"]]
    whole = sum(k["seconds"] for k in timed)
    if not whole:
        return
    moving = sum(k["seconds"] for k in timed if k["flops"] <= ridge * k["bytes"]) / whole
    size = min(width - 44, 40)
    yield f"limited by memory {bar(moving, size)} {100 * moving:.0f} %, by computing {100 * (1 - moving):.0f} %"


def _plot(dots: Sequence[_Dot], roof: Mapping[str, Any], width: int) -> Iterator[str]:
    """The roof as `/` and `-`, the kernels as letters; several at one place show as `*`."""
    ridge = roof["flops"] / roof["bandwidth"]
    left, right = _decades([ridge, *(d.intensity for d in dots)])
    low, high = _decades([roof["flops"], *(d.rate for d in dots)])

    def place(x: float, y: float) -> tuple[int, int]:
        across = round((math.log10(x) - left) / (right - left) * (width - 1))
        up = round((math.log10(y) - low) / (high - low) * (_HEIGHT - 1))
        return across, up

    cells: dict[tuple[int, int], str] = {}
    for column in range(width):
        x = 10 ** (left + (right - left) * column / (width - 1))
        limit = min(roof["flops"], x * roof["bandwidth"])
        if limit >= 10**low:
            cells[column, place(x, limit)[1]] = "-" if x >= ridge else "/"
    taken: dict[tuple[int, int], str] = {}
    for dot in dots:
        at = place(dot.intensity, dot.rate)
        taken[at] = "*" if at in taken else dot.letter
    cells |= taken
    for up in reversed(range(_HEIGHT)):
        label = shown(10 ** (low + (high - low) * up / (_HEIGHT - 1)), "count") if up in (0, _HEIGHT - 1) else ""
        yield f"{label:>10} |" + "".join(cells.get((column, up), " ") for column in range(width)).rstrip()
    ends = f"{10**left:g}", f"{10**right:g} FLOPs per byte"
    yield f"{'':>10} +{'-' * width}"
    yield f"{'':>12}{ends[0]}{ends[1]:>{width - len(ends[0])}}"


def _decades(numbers: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around the numbers."""
    low, high = math.floor(math.log10(min(numbers))), math.ceil(math.log10(max(numbers)))
    return low, max(high, low + 1)
