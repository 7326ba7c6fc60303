"""Sharding: the mesh, how values lie on it, and the collectives with their causes."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from xlamini.inspection.equations import place_of
from xlamini.inspection.quantities import Target
from xlamini.inspection.text.view import View
from xlamini.inspection.units import shown

ABOUT = (
    "Sharding: the mesh of devices, how values are split over it, and the collectives that move data between devices, "
    "each with its cause."
)


def lines(view: View) -> Iterator[str]:
    mesh = view.report["mesh"]
    yield ""
    if mesh is None:
        yield "not available: the program has no mesh"
    else:
        yield from _mesh(view, mesh)
    yield from view.by_target(_collectives, "collectives")


def _mesh(view: View, mesh: Mapping[str, Any]) -> Iterator[str]:
    axes = ", ".join(f"{a['name']}={a['size']} ({a['type']})" for a in mesh["axes"])
    yield from view.say(f"mesh: {axes}")
    yield from _grid(mesh["devices"])
    yield ""
    rows = [
        [v["name"], v["type"], _spec(v["spec"]), str(len({str(s["index"]) for s in v["shards"]})), _shard(v["shards"])]
        for v in mesh["values"]
    ]
    if rows:
        yield from view.table(("value", "type", "spec", "different shards", "of the first device"), rows, right=(3,))


def _grid(devices: Any, indent: str = "  ") -> Iterator[str]:
    """The ids of the devices, a line for each row of the mesh; further axes as blocks below one another."""
    if not isinstance(devices, list):
        yield f"{indent}{devices}"
    elif all(not isinstance(d, list) for d in devices):
        yield indent + " ".join(f"{d:>3}" for d in devices)
    else:
        for i, inner in enumerate(devices):
            if i and isinstance(inner, list) and inner and isinstance(inner[0], list):
                yield ""
            yield from _grid(inner, indent)


def _spec(spec: Any) -> str:
    return f"P({', '.join(map(repr, spec))})" if isinstance(spec, list) else str(spec)


def _shard(shards: list[Mapping[str, Any]]) -> str:
    if not shards:
        return ""
    return "[" + ", ".join(f"{start}:{stop}" for start, stop in shards[0]["index"]) + "]"


def _collectives(view: View, target: Target) -> Iterator[str]:
    found = sorted(target["collectives"], key=lambda c: -c["bytes"] * c["times"])
    if not found:
        yield "No collectives."
        return
    rows = [
        [c["kind"], shown(c["bytes"], "bytes"), f"{c['times']:g}", "-" if c["group"] is None else str(c["group"]),
         "asked for" if c["asked"] else "put in by the partitioner", _cause(view, c)]
        for c in found
    ]  # fmt: skip
    head = ("collective", "bytes", "times", "devices", "", "cause")
    yield from view.table(head, rows, right=(1, 2, 3))
    total = sum(c["bytes"] * c["times"] for c in found)
    yield f"{shown(total, 'bytes')} in all"


def _cause(view: View, collective: Mapping[str, Any]) -> str:
    if collective["row"] is None:
        return collective["line"] or "no line"
    place = place_of(view.report, collective["row"])
    return f"{place}  {place.text}".rstrip()
