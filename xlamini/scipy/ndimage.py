"""Arrays read between their elements: map_coordinates."""
from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from xlamini import numpy as jnp
from xlamini.core.errors.api_boundary import edge_of_face as _edge_of_face
from xlamini.numpy.arguments import as_operand
from xlamini.primitives.base.promotion import float_of
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike

__all__ = ["map_coordinates"]


@composite(static=("order", "mode"))
def map_coordinates(
    input: ArrayLike, coordinates: Sequence[ArrayLike], order: int, mode: str = "constant", cval: ArrayLike = 0.0
) -> Array:
    """The elements of `input` at `coordinates`, one array for each dimension; all of one shape, which is the result's.

    With `order` 0 the nearest element is taken, with `order` 1 the neighbors of a point are interpolated linearly.
    `mode` extends the array: "grid-constant" by `cval`; "nearest" by the outermost element; "grid-wrap" periodically;
    "reflect" by its mirror image, and "mirror" by one that does not repeat the outermost element. "constant" and "wrap"
    are, as in JAX, other names of the first and third; SciPy's blend no `cval`, and have a period shorter by one.
    Integers are rounded, halves away from zero. ValueError for another number of coordinates, NotImplementedError for
    other orders and modes.

    >>> map_coordinates(jnp.array([[0.0, 1.0], [2.0, 3.0]]), [jnp.array([0.5]), jnp.array([1.0])], order=1)
    Array([2.], dtype=float32)
    """
    name = "map_coordinates"
    x = as_operand(name, input)
    if len(coordinates) != x.ndim:
        raise ValueError(f"{name}: {len(coordinates)} coordinates for an array of rank {x.ndim}; give one a dimension")
    if mode not in _INSIDE:
        raise NotImplementedError(f"{name}: mode must be one of {', '.join(map(repr, _INSIDE))}, got {mode!r}")
    if order not in _NODES:
        raise NotImplementedError(f"{name}: order must be 0 or 1, got {order!r}")
    places = [_floating(as_operand(name, c)) for c in coordinates]
    nodes = [list(_NODES[order](c)) for c in places]
    whole = jnp.issubdtype(x.dtype, np.integer)
    terms = [_term(x, chosen, mode, cval) for chosen in itertools.product(*nodes)]
    result: Any = sum(terms[1:], terms[0])
    return _rounded(result).astype(x.dtype) if whole else result.astype(x.dtype)


# --- helpers

Node = tuple[Any, Any]


def _floating(c: Any) -> Any:
    return c if jnp.issubdtype(c.dtype, np.floating) else c.astype(float_of(c.dtype))


def _nearest(c: Any) -> Iterator[Node]:
    yield _rounded(c).astype(np.int32), jnp.ones((), c.dtype)


def _around(c: Any) -> Iterator[Node]:
    below = jnp.floor(c)
    share = c - below
    index = below.astype(np.int32)
    yield index, 1 - share
    yield index + 1, share


# The elements that count for a coordinate, and how much.
_NODES: dict[int, Callable[[Any], Iterator[Node]]] = {0: _nearest, 1: _around}


def _rounded(x: Any) -> Any:
    return jnp.sign(x) * jnp.floor(abs(x) + 0.5) if jnp.issubdtype(x.dtype, np.floating) else x


def _term(x: Any, nodes: Sequence[Node], mode: str, cval: Any) -> Any:
    """One element for each point, times its weight."""
    weight = nodes[0][1] if nodes else 1.0
    for _, share in nodes[1:]:
        weight = weight * share
    found = x[tuple(_INSIDE[mode](i, n) for (i, _), n in zip(nodes, x.shape, strict=True))]
    if mode in ("constant", "grid-constant"):
        for (i, _), n in zip(nodes, x.shape, strict=True):
            found = jnp.where((i >= 0) & (i < n), found, cval)
    return weight * found


def _mirrored(index: Any, n: int) -> Any:
    """Back and forth between 0 and n - 1."""
    last = n - 1
    return abs((index + last) % (2 * last) - last) if last else index * 0


# Where an index leads that may lie beyond n elements.
_INSIDE: dict[str, Callable[[Any, int], Any]] = {
    "constant": lambda index, n: index.clip(0, n - 1),
    "grid-constant": lambda index, n: index.clip(0, n - 1),
    "nearest": lambda index, n: index.clip(0, n - 1),
    "grid-wrap": lambda index, n: index % n,
    "wrap": lambda index, n: index % n,
    "mirror": _mirrored,
    "reflect": lambda index, n: _mirrored(2 * index + 1, 2 * n + 1) // 2,
}

_edge_of_face(globals())
