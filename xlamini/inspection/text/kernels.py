"""The kernels of a program, and the values that pass through memory between them."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from xlamini.inspection.quantities import Target
from xlamini.inspection.text.view import View


def lines(view: View) -> Iterator[str]:
    yield from view.by_target(_kernels, "kernels")


def _kernels(view: View, target: Target) -> Iterator[str]:
    kernels = [roofed(kernel, target["roof"]) for kernel in target["kernels"]]
    sources = {kernel["time"] for kernel in kernels} - {None}
    if len(sources) == 1:
        yield f"times: {min(sources)}"
        kernels = [{**kernel, "time": None} for kernel in kernels]
    yield from view.table("kernels", kernels, target)
    if loops := [kernel for kernel in kernels if kernel["each"] is not None]:
        yield ""
        yield from view.table("iterations", loops, target)
    coverage = target["coverage"]
    if coverage:
        put_in = f"; put in by XLA: {', '.join(coverage['inserted'][: view.limit])}" if coverage["inserted"] else ""
        text = f"{coverage['with_id']} of {coverage['instructions']} instructions come from an equation{put_in}"
        yield from view.say(text)
    yield ""
    yield from view.part(target, _boundaries(view, target), "boundaries")
    yield from _own_kernels(view, target)


def _boundaries(view: View, target: Target) -> Iterator[str]:
    yield from view.table("boundaries", target["boundaries"], target)


def _own_kernels(view: View, target: Target) -> Iterator[str]:
    """The kernels of `pallas_call`: what the target's compiler made of each, and its module."""
    if "own_kernels" in (target["unavailable"] or {}):
        yield from view.part(target, (), "own_kernels")
    for kernel in target.get("own_kernels") or ():
        grid = "x".join(map(str, kernel["grid"])) or "1"
        figures = ", ".join(f"{name} {value}" for name, value in kernel["figures"].items())
        yield ""
        yield from view.say(f"kernel {kernel['name']}, at {kernel['line']}, grid {grid}: {figures}")
        yield from _module(view, kernel)


def _module(view: View, kernel: Mapping[str, Any]) -> Iterator[str]:
    """The first lines of a kernel's module, as many as a table may have rows."""
    lines = kernel["module"].splitlines()
    yield f"  its {kernel['dialect']}:"
    yield from (f"    {line}" for line in lines[: view.limit])
    more = len(lines) - view.limit
    if more > 0:
        yield f"    … and {more} more lines; limit={len(lines)} shows all"


def roofed(kernel: Mapping[str, Any], roof: Mapping[str, Any] | None) -> dict[str, Any]:
    """A kernel with its FLOPs per byte, what bounds it, and the share of the roof that it reaches.

    `taken` is its measured time if it has one. A lower bound of its time is computed from the roof, so it has no share.
    """
    intensity, measured = kernel["flops"] / kernel["bytes"] if kernel["bytes"] else None, kernel.get("measured")
    taken = measured["seconds"] if measured else kernel["seconds"]
    each = taken / measured["runs"] if measured and measured["runs"] > 1 else None
    found = {**kernel, "intensity": intensity, "bound": None, "share": None, "taken": taken, "each": each}
    if roof is None:
        return found
    if intensity is not None:
        found["bound"] = "memory" if intensity < roof["flops"] / roof["bandwidth"] else "compute"
    if taken and (measured or kernel["time"] != "lower bound"):
        least = max(kernel["flops"] / roof["flops"], kernel["bytes"] / roof["bandwidth"])
        found["share"] = least / taken
    return found
