"""The roofline: how near each kernel comes to what the device can compute and move."""
from __future__ import annotations

import math
import string
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from xlamini.inspection.layout import bar
from xlamini.inspection.quantities import Target
from xlamini.inspection.text.kernels import roofed
from xlamini.inspection.text.view import Item, View
from xlamini.inspection.units import shown

_HEIGHT = 12


def lines(view: View) -> Iterator[str]:
    yield from view.by_target(_roofline, "roof", "kernels")


def _roofline(view: View, target: Target) -> Iterator[str]:
    roof = target["roof"]
    if not (roof["flops"] > 0 and roof["bandwidth"] > 0):
        yield from view.say(f"not available for {target['name']}: xlamini does not know its peaks")
        return
    kernels = sorted((roofed(kernel, roof) for kernel in target["kernels"]), key=lambda k: -(k["taken"] or 0))
    able = [k for k in kernels if k["flops"] and k["bytes"] and k["taken"]]
    dots = [
        {**k, "letter": letter, "rate": k["flops"] / k["taken"]}
        for letter, k in zip(string.ascii_letters[: view.limit], able, strict=False)
    ]
    yield from view.say(
        f"roof: {shown(roof['flops'], 'count')}FLOP/s, {shown(roof['bandwidth'], 'count')}B/s ({roof['source']})"
    )
    yield from _bound(kernels, view.width)
    if not dots:
        yield "No kernel has FLOPs, bytes and a time."
        return
    yield from _plot(dots, roof, min(view.width, 100) - 12)
    yield from view.table("kernels", dots)


def _bound(kernels: Sequence[Item], width: int) -> Iterator[str]:
    """The share of the time in kernels that memory limits, and in those that computing limits."""
    whole = sum(k["taken"] or 0 for k in kernels)
    if not whole:
        return
    moving = sum(k["taken"] or 0 for k in kernels if k["bound"] == "memory") / whole
    size = min(width - 44, 40)
    yield f"limited by memory {bar(moving, size)} {100 * moving:.0f} %, by computing {100 * (1 - moving):.0f} %"


def _plot(dots: Sequence[Item], roof: Mapping[str, Any], width: int) -> Iterator[str]:
    """The roof as `/` and `-`, the kernels as letters; several at one place show as `*`."""
    ridge = roof["flops"] / roof["bandwidth"]
    left, right = _decades([ridge, *(d["intensity"] for d in dots)])
    low, high = _decades([roof["flops"], *(d["rate"] for d in dots)])

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
        at = place(dot["intensity"], dot["rate"])
        taken[at] = "*" if at in taken else dot["letter"]
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
