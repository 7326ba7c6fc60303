"""Collectives over named axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.error_rows import ones, row
from xlamini import lax, vmap
from xlamini.errors import ShapeError


def over(fun: Callable[[Any], Any], *shape: int) -> Any:
    return vmap(fun, axis_name="i")(ones(4, *shape))


ROWS = [
    row(
        "all_gather", lambda: lax.all_gather(1.0, "i"), NameError, "unbound axis name: 'i'", "vmap(..., axis_name='i')"
    ),
    row("ppermute", lambda: over(lambda x: lax.ppermute(x, "j", [(0, 1)])), NameError, "'j'", "named axes here: 'i'"),
    row(
        "all_to_all", lambda: lax.all_to_all(ones(2), ("a", "b"), 0, 0), NameError, "unbound axis name: 'a'",
        "named axes here: none",
    ),
    row("twice", lambda: over(lambda x: lax.psum(x, ("i", "i"))), ValueError, "names the axis 'i' twice"),
    row(
        "gather axis", lambda: over(lambda x: lax.all_gather(x, "i", axis=3), 2), ValueError,
        "all_gather: axis 3 is out of range for rank 2; it takes -2 to 1",
    ),
    row(
        "tiled scalars", lambda: over(lambda x: lax.all_gather(x, "i", tiled=True)), ValueError,
        "all_gather: axis 0 is out of range for rank 0; a scalar has no dimension",
    ),
    row("to", lambda: over(lambda x: lax.all_gather(x, "i", to="all")), ValueError, "to must be 'varying'", "'all'"),
    row(
        "scatter size", lambda: over(lambda x: lax.psum_scatter(x, "i"), 3), ShapeError,
        "dimension 0 has size 3, but must have just the 4 positions", "axis 'i'", "tiled=True",
    ),
    row(
        "scatter blocks", lambda: over(lambda x: lax.psum_scatter(x, "i", tiled=True), 6), ShapeError,
        "size 6, but must have a multiple of the 4 positions", "pad it",
    ),
    row(
        "scatter_dimension", lambda: over(lambda x: lax.psum_scatter(x, "i", scatter_dimension=1), 4), ValueError,
        "psum_scatter: scatter_dimension 1 is out of range for rank 1",
    ),
    row(
        "split_axis", lambda: over(lambda x: lax.all_to_all(x, "i", 2, 0), 4), ValueError,
        "all_to_all: split_axis 2 is out of range for rank 1; it takes -1 to 0",
    ),
    row(
        "concat_axis", lambda: over(lambda x: lax.all_to_all(x, "i", 0, -3), 4), ValueError,
        "all_to_all: concat_axis -3 is out of range",
    ),
    row(
        "split size", lambda: over(lambda x: lax.all_to_all(x, "i", 0, 0), 3), ShapeError,
        "the size of split_axis (3, dimension 0) must be equal to that of the named axis 'i' (4 positions)",
        "tiled=True",
    ),
    row(
        "split blocks", lambda: over(lambda x: lax.all_to_all(x, "i", 0, 0, tiled=True), 3), ShapeError,
        "must be divisible by", "4 positions", "pad it",
    ),
    row("pswapaxes", lambda: over(lambda x: lax.pswapaxes(x, "i", 0), 3), ShapeError, "pswapaxes: the size of axis (3"),
    row(
        "source twice", lambda: over(lambda x: lax.ppermute(x, "i", [(0, 1), (0, 2)])), ValueError,
        "ppermute: source 0 is twice in perm [(0, 1), (0, 2)]", "pbroadcast",
    ),
    row(
        "destination twice", lambda: over(lambda x: lax.ppermute(x, "i", [(0, 1), (2, 1)])), ValueError,
        "ppermute: destination 1 is twice in perm",
    ),
    row(
        "no position", lambda: over(lambda x: lax.ppermute(x, "i", [(0, 4)])), ValueError,
        "destination 4 in perm is no position of an axis of size 4; it takes 0 to 3",
    ),
    row("negative", lambda: over(lambda x: lax.ppermute(x, "i", [(-1, 0)])), ValueError, "source -1 in perm"),
    row(
        "no pairs", lambda: over(lambda x: lax.ppermute(x, "i", [0, 1])), TypeError, "pairs (source, destination)", "0"
    ),
    row(
        "pshuffle", lambda: over(lambda x: lax.pshuffle(x, "i", [3, 1, 0, 0])), ValueError,
        "pshuffle: perm must name each position, 0 to 3, once, but is [3, 1, 0, 0]",
    ),
    row(
        "pbroadcast", lambda: over(lambda x: lax.pbroadcast(x, "i", 4)), ValueError, "source 4 is no position along 'i'"
    ),
    row(
        "groups", lambda: over(lambda x: lax.psum(x, "i", axis_index_groups=[[0, 1], [2, 2]])), ValueError,
        "axis_index_groups must cover all indices exactly once", "0 to 3", "[[0, 1], [2, 2]]",
    ),
    row(
        "uneven groups", lambda: over(lambda x: lax.all_gather(x, "i", axis_index_groups=[[0], [1, 2, 3]])),
        ValueError, "all_gather: axis_index_groups must be of one size, but have [1, 3] positions",
    ),
    row(
        "groups of two axes",
        lambda: over(lambda x: vmap(lambda y: lax.psum(y, ("i", "j"), axis_index_groups=[[0]]), axis_name="j")(x), 3),
        ValueError, "axis_index_groups are of one axis, but axis_name is ('i', 'j')",
    ),
]
