"""Sharding: the mesh, how values lie on it, and the collectives with their causes."""
from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from xlamini.inspection.equations import place_of
from xlamini.inspection.quantities import Target
from xlamini.inspection.text.view import Item, View
from xlamini.inspection.units import shown


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
    yield from view.table("values", map(_value, mesh["values"]))


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


def _value(value: Item) -> Item:
    """A value of the mesh with its spec as text, how many different shards it has, and the first of them."""
    spec, shards = value["spec"], [shard["index"] for shard in value["shards"]]
    first = ", ".join(f"{start}:{stop}" for start, stop in shards[0]) if shards else None
    return {
        **value,
        "spec": f"P({', '.join(map(repr, spec))})" if isinstance(spec, list) else str(spec),
        "parts": len(set(map(str, shards))),
        "first": None if first is None else f"[{first}]",
    }


def _collectives(view: View, target: Target) -> Iterator[str]:
    found = [
        {**c, "moved": c["bytes"] * c["times"], "cause": _cause(view, c)} for c in target["collectives"]
    ]
    yield from view.table("collectives", found)
    if found:
        yield f"{shown(sum(c['moved'] for c in found), 'bytes')} in all"


def _cause(view: View, collective: Item) -> str | None:
    if collective["row"] is None:
        return collective["line"] or None
    place = place_of(view.report, collective["row"])
    return f"{place}  {place.text}".rstrip()
