"""The cheapest values to compute others from: a minimum cut of a graph whose vertices have weights.

By the theorem of Ford and Fulkerson the least weight of vertices that separate sources from targets is the largest flow
from the ones to the others, if no more than its weight flows through a vertex. Each vertex is two here, joined by an
edge of that capacity; flow is added along shortest paths until there are none (Edmonds and Karp, 1972).
"""
from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

_SOURCE, _TARGET = ("source", False), ("target", False)
"""Ends of all paths; other vertices are halves, (vertex, whether it is the exit)."""


def cheapest_cut(
    operands: Mapping[Any, Sequence[Any]], targets: Iterable[Hashable], weight: Callable[[Any], int]
) -> list[Any]:
    """Vertices of the least total weight from which all targets can be computed; of several cuts the last one.

    Arguments:
      operands: what a vertex can be computed from; vertices without an entry must be given.
    """
    residual: dict[Any, dict[Any, float]] = defaultdict(lambda: defaultdict(int))
    _connect(residual, operands, dict.fromkeys(targets), weight)
    while path := _shortest_path(residual):
        least = min(residual[a][b] for a, b in path)
        for a, b in path:
            residual[a][b] -= least
            residual[b][a] += least
    reaching = _reaching_target(residual)
    vertices = [half[0] for half in residual if half in reaching and half[1]]  # not in the order of a set
    return [vertex for vertex in vertices if (vertex, False) not in reaching]


def _connect(
    residual: Any, operands: Mapping[Any, Sequence[Any]], targets: Iterable[Any], weight: Callable[[Any], int]
) -> None:
    """Add the edges: a vertex's entrance to its exit, the exits of operands to entrances, both ends."""
    for target in targets:
        residual[target, True][_TARGET] = math.inf
    waiting, seen = list(targets), set(targets)
    while waiting:
        vertex = waiting.pop()
        residual[vertex, False][vertex, True] = weight(vertex)
        if vertex not in operands:
            residual[_SOURCE][vertex, False] = math.inf
        for operand in operands.get(vertex, ()):
            residual[operand, True][vertex, False] = math.inf
            if operand not in seen:
                seen.add(operand)
                waiting.append(operand)


def _shortest_path(residual: Any) -> list[tuple[Any, Any]]:
    """The edges of a shortest path that can take more flow, from its end; [] if there is none."""
    before: dict[Any, Any] = {_SOURCE: None}
    waiting = [_SOURCE]
    for here in waiting:
        for there, capacity in residual[here].items():
            if capacity > 0 and there not in before:
                before[there] = here
                waiting.append(there)
    path, here = [], _TARGET
    while before.get(here) is not None:
        path.append((before[here], here))
        here = before[here]
    return path


def _reaching_target(residual: Any) -> set[Any]:
    """The vertices' halves from which more could flow to the target."""
    into: dict[Any, list[Any]] = defaultdict(list)
    for here, edges in residual.items():
        for there, capacity in edges.items():
            if capacity > 0:
                into[there].append(here)
    waiting = [_TARGET]
    found = {_TARGET}
    for there in waiting:
        new = [here for here in into[there] if here not in found]
        found.update(new)
        waiting += new
    return found
