"""The cheapest values to compute others from: a minimum cut of a graph whose vertices have weights.

By the theorem of Ford and Fulkerson the least weight of vertices that separate sources from targets is the largest flow
from the ones to the others, if no more than its weight flows through a vertex. Each vertex is two halves here, joined
by an edge of that capacity. Flow is added along all shortest paths at once until there are none (Dinitz, 1970), so a
graph takes as many rounds as its paths have lengths.
"""
from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

_SOURCE, _TARGET = 0, 1
"""The ends of all paths. Of vertex n the entrance is 2n + 2, and the exit 2n + 3."""

Residual = defaultdict[int, dict[int, float]]
"""How much more can flow from one half to another."""


def cheapest_cut(
    operands: Mapping[Any, Sequence[Any]], targets: Collection[Any], weight: Callable[[Any], int]
) -> list[Any]:
    """Vertices of the least total weight from which all targets can be computed; of several cuts the last one.

    Arguments:
      operands: what a vertex can be computed from; vertices without an entry must be given.
    """
    vertices = _reachable(operands, targets)
    residual: Residual = defaultdict(dict)
    for vertex, n in vertices.items():
        residual[2 * n + 2][2 * n + 3] = weight(vertex)
        for operand in operands.get(vertex, ()):
            residual[2 * vertices[operand] + 3][2 * n + 2] = math.inf
        if vertex not in operands:
            residual[_SOURCE][2 * n + 2] = math.inf
    for target in targets:
        residual[2 * vertices[target] + 3][_TARGET] = math.inf
    while _TARGET in (distances := _distances(residual)):
        _add_flow(residual, distances)
    reaching = _reaching_target(residual)
    return [vertex for vertex, n in vertices.items() if 2 * n + 3 in reaching and 2 * n + 2 not in reaching]


def _reachable(operands: Mapping[Any, Sequence[Any]], targets: Iterable[Any]) -> dict[Any, int]:
    """A number for each vertex that a target may be computed from."""
    vertices: dict[Any, int] = {}
    waiting = list(targets)
    for vertex in waiting:
        if vertex not in vertices:
            vertices[vertex] = len(vertices)
            waiting += operands.get(vertex, ())
    return vertices


def _distances(residual: Residual) -> dict[int, int]:
    """The length of the shortest path from the source to each half, over edges that can take more flow."""
    found = {_SOURCE: 0}
    waiting = [_SOURCE]
    for here in waiting:
        for there, capacity in residual[here].items():
            if capacity > 0 and there not in found:
                found[there] = found[here] + 1
                waiting.append(there)
    return found


def _add_flow(residual: Residual, distances: Mapping[int, int]) -> None:
    """Add flow along shortest paths until each has an edge that is full."""
    untried = {here: list(residual[here]) for here in distances}
    path = [_SOURCE]
    while path:
        here = path[-1]
        if here == _TARGET:
            _add_along(residual, path)
            path = [_SOURCE]
            continue
        edges, further = untried[here], distances[here] + 1
        while edges and (residual[here][edges[-1]] == 0 or distances.get(edges[-1]) != further):
            edges.pop()
        if edges:
            path.append(edges[-1])
        else:
            path.pop()
            if path:
                untried[path[-1]].pop()


def _add_along(residual: Residual, path: Sequence[int]) -> None:
    """Add the flow that fills an edge of the path; it may flow back later."""
    edges = list(itertools.pairwise(path))
    least = min(residual[a][b] for a, b in edges)
    for a, b in edges:
        residual[a][b] -= least
        residual[b][a] = residual[b].get(a, 0) + least


def _reaching_target(residual: Residual) -> set[int]:
    """The halves from which more could flow to the target."""
    into: dict[int, list[int]] = defaultdict(list)
    for here, edges in residual.items():
        for there, capacity in edges.items():
            if capacity > 0:
                into[there].append(here)
    found = {_TARGET}
    waiting = [_TARGET]
    for there in waiting:
        new = [here for here in into[there] if here not in found]
        found.update(new)
        waiting += new
    return found
