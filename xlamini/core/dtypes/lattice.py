"""The lattice that says what dtypes promote to.

The lattice's nodes are dtypes and three weak types, written `int`, `float` and `complex`: a Python
scalar, or an array made of Python scalars only. A weak type lies below the dtypes it adapts to.

    bool -> int -> u8 -> u16 -> u32 -> u64 -> float -> bf16, f16 -> f32 -> f64
            int -> i8 -> i16 -> i32 -> i64 -> float -> complex -> c64 -> c128

with u8 -> i16, u16 -> i32, u32 -> i64, f32 -> c64 and f64 -> c128 between the rows. The 1-, 2- and
4-bit integers hang above `int`, the 4-, 6- and 8-bit floats above `float`, and promote no further.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from xlamini.core.caching.memo import memoised
from xlamini.core.dtypes.table import bool_, complexes, floats, scalar_types, signed, small_floats, small_ints, unsigned

Node = np.dtype | type[int] | type[float] | type[complex]
Edges = dict[Node, list[Node]]


def _no_edges() -> Edges:
    return {node: [] for node in (*scalar_types, int, float, complex)}


def _chain(edges: Edges, *nodes: Node) -> None:
    for lower, upper in itertools.pairwise(nodes):
        edges[lower].append(upper)


def _standard(x64: bool) -> Edges:
    bf16, f16, f32, f64 = floats
    c64, c128 = complexes
    i16, i32, i64 = signed[1:]
    u8, u16, u32, _ = unsigned
    edges = _no_edges()
    edges[int].extend(small_ints)
    edges[float].extend(small_floats)
    _chain(edges, bool_, int, *signed, float, complex, c64, c128)
    _chain(edges, int, *unsigned, float, bf16, f32, f64, c128)
    _chain(edges, float, f16, f32, c64)
    for lower, upper in ((u8, i16), (u16, i32), (u32, i64 if x64 else i32)):
        _chain(edges, lower, upper)
    return edges


def _strict() -> Edges:
    edges = _no_edges()
    edges[int] = [float, *small_ints, *unsigned, *signed]
    edges[float] = [complex, *small_floats, *floats]
    edges[complex] = [*complexes]
    return edges


def _above(edges: Edges) -> dict[Node, frozenset[Node]]:
    """Each node's upper bounds, itself among them."""

    found: dict[Node, frozenset[Node]] = {}

    def above(node: Node) -> frozenset[Node]:
        if node not in found:
            found[node] = frozenset({node}).union(*map(above, edges[node]))
        return found[node]

    return {node: above(node) for node in edges}


@memoised("helper: promotion lattices", None)
def _upper_bounds(x64: bool, strict: bool) -> dict[Node, frozenset[Node]]:
    return _above(_strict() if strict else _standard(x64))


def join(nodes: Iterable[Node], x64: bool, strict: bool) -> Node | None:
    """The least node above all of `nodes`, or None where there is none."""
    bounds = _upper_bounds(x64, strict)
    common = frozenset.intersection(*(bounds[node] for node in nodes))
    return next((node for node in common if common <= bounds[node]), None)
