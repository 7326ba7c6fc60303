"""The product of rows in groups with a matrix for each group: kernels that read the groups' sizes.

Rows are in tiles. A group visits the tiles that have rows of it, so a tile where one group ends and the next begins is
visited twice in a row, and each visit writes its own rows. How many visits there are depends on the sizes, but they
are at most the tiles and the groups together: so many programs there are, and those left over have no rows. On a TPU
the grid has an axis for the summed features; on a GPU each program has a loop over them.

The idea of visits: Gale et al., "MegaBlocks: Efficient Sparse Training with Mixture-of-Experts" (2022), section 5.
"""
from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from xlamini import lax, numpy as jnp
from xlamini.nn.kernels.flash_tiles import product
from xlamini.nn.kernels.targets import GRID, Hints, for_target, padded_to
from xlamini.numpy.indexing.slices import ds
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.transforms.control_flow.fori_loop import fori_loop
from xlamini.transforms.custom.custom_vjp import custom_vjp
from xlamini.transforms.pallas.api import pallas_call
from xlamini.transforms.pallas.control_flow import when
from xlamini.transforms.pallas.grid import num_programs, program_id
from xlamini.transforms.pallas.specs import VMEM, BlockSpec, PrefetchScalarGridSpec
from xlamini.transforms.pallas.triton_memory import store


@dataclass(frozen=True)
class Grouped:
    """How a product in groups is computed: in a grid in tiles of these rows, summed features, and columns.

    `dtype` is that of the result, and `across` says that matrices have their columns first. `walk` is that of
    `targets.for_target`.
    """

    dtype: Any
    across: bool = False
    tile: tuple[int, int, int] = (128, 128, 128)
    walk: str | None = None


@functools.partial(custom_vjp, nondiff_argnums=(0,))
def grouped_matmul(how: Grouped, rows: Any, matrices: Any, counts: Any) -> Any:
    """The product of each row with the matrix of its group; zeros for rows that no group has.

    `rows` has shape (m, k), `matrices` (groups, k, n), or (groups, n, k) if `how.across`; `counts`, int32, (groups,),
    how many rows each group has, in order.
    """
    return for_target(functools.partial(_by_rows, how), how.walk, rows, matrices, counts).astype(how.dtype)


def _kept(how: Grouped, rows: Any, matrices: Any, counts: Any) -> Any:
    return grouped_matmul(how, rows, matrices, counts), (rows, matrices, counts)


def _derivative(how: Grouped, kept: Any, ct: Any) -> tuple[Any, Any, None]:
    rows, matrices, counts = kept
    m, k, n = how.tile
    back = Grouped(rows.dtype, not how.across, (m, n, k), how.walk)
    of_rows = grouped_matmul(back, ct.astype(rows.dtype), matrices, counts)
    x, y = (ct, rows) if how.across else (rows, ct)
    across = Grouped(matrices.dtype, False, (m, n, k) if how.across else (m, k, n), how.walk)
    return of_rows, grouped_outer(across, x.astype(rows.dtype), y.astype(rows.dtype), counts), None


grouped_matmul.defvjp(_kept, _derivative)


@functools.partial(custom_vjp, nondiff_argnums=(0,))
def grouped_outer(how: Grouped, x: Any, y: Any, counts: Any) -> Any:
    """The product `x.T @ y` of the rows of each group, of shape (groups, k, n), for x (m, k) and y (m, n)."""
    return for_target(functools.partial(_by_groups, how), how.walk, x, y, counts).astype(how.dtype)


def _outer_kept(how: Grouped, x: Any, y: Any, counts: Any) -> Any:
    return grouped_outer(how, x, y, counts), (x, y, counts)


def _outer_derivative(how: Grouped, kept: Any, ct: Any) -> tuple[Any, Any, None]:
    x, y, counts = kept
    m, k, n = how.tile
    ct = ct.astype(x.dtype)
    of_x = grouped_matmul(Grouped(x.dtype, True, (m, n, k), how.walk), y, ct, counts)
    return of_x, grouped_matmul(Grouped(y.dtype, False, (m, k, n), how.walk), x, ct, counts), None


grouped_outer.defvjp(_outer_kept, _outer_derivative)


# --- visits


class Visits(NamedTuple):
    """For each visit the group, the tile of rows, and the group's rows: from `first` on, below `stop`."""

    group: Any
    tile: Any
    first: Any
    stop: Any


def visits(counts: Any, rows: int, tile: int, with_rest: bool = False) -> Visits:
    """The visits of all groups, in order.

    Rows that no group has are visited for the last group, without rows of it; `with_rest` for one more group, as its
    own.
    """
    groups, tiles = counts.shape[0], -(-rows // tile)
    stop = jnp.concatenate([_stops(counts, rows), jnp.full(1, rows, np.int32)])
    first = jnp.concatenate([jnp.zeros(1, np.int32), stop[:-1]])
    first_tile = jnp.minimum(lax.div(first, np.int32(tile)), tiles - 1)
    last_tile = jnp.minimum(lax.div(jnp.maximum(stop - 1, first), np.int32(tile)), tiles - 1)
    before = jnp.cumsum(last_tile - first_tile + 1)
    number = jnp.arange(tiles + groups, dtype=np.int32)
    own = jnp.minimum((number[:, None] >= before).sum(1).astype(np.int32), groups)
    start = before - (last_tile - first_tile + 1)
    at = jnp.minimum(first_tile[own] + number - start[own], last_tile[own])
    has_rows = number < before[-1]
    if not with_rest:
        has_rows &= own < groups
    group = own if with_rest else jnp.minimum(own, groups - 1)
    return Visits(group, at, *(jnp.where(has_rows, x[own], 0) for x in (first, stop)))


def _stops(counts: Any, rows: int) -> Any:
    """Where each group's rows end; there are no rows beyond the last one, whatever the counts say."""
    return jnp.minimum(jnp.cumsum(counts.astype(np.int32)), rows)


def _is_other(numbers: Any, visit: Any, other: Any, end: Any) -> Any:
    """Whether a visit is at the end, or has another number than another visit."""
    inside = jnp.where(visit == end, visit, other)
    return (visit == end) | (numbers[inside] != numbers[visit])


def _is_own(of: Visits, visit: Any, shape: tuple[int, int]) -> Any:
    """Which rows of a tile belong to the visit's group."""
    return _between(of.first[visit], of.stop[visit], of.tile[visit] * shape[0], shape)


def _between(first: Any, stop: Any, start: Any, shape: tuple[int, int]) -> Any:
    """Which rows of a tile that begins at `start` are from `first` on, and below `stop`."""
    row = start + lax.broadcasted_iota(np.int32, shape, 0)
    return (row >= first) & (row < stop)


def _by_rows(how: Grouped, walk: str, rows: Any, matrices: Any, counts: Any) -> Any:
    """`grouped_matmul` in this walk."""
    return (_rows_in_grid if walk == GRID else _rows_in_loop)(how, rows, matrices, counts)


def _by_groups(how: Grouped, walk: str, x: Any, y: Any, counts: Any) -> Any:
    """`grouped_outer` in this walk."""
    return (_groups_in_grid if walk == GRID else _groups_in_loop)(how, x, y, counts)


# --- in a grid


def _rows_in_grid(how: Grouped, rows: Any, matrices: Any, counts: Any) -> Any:
    m, k = rows.shape
    n = matrices.shape[1 if how.across else 2]
    tile_m, tile_k, tile_n = _tile(how, m, k, n)
    rows = _padded(rows, (0, -k % tile_k))
    matrices = _padded(matrices, (0, 0, -k % tile_k) if how.across else (0, -k % tile_k, 0))
    of = visits(counts, m, tile_m)
    block = (None, tile_n, tile_k) if how.across else (None, tile_k, tile_n)
    of_matrix = (lambda j, v, i, g, *_: (g[v], j, i)) if how.across else (lambda j, v, i, g, *_: (g[v], i, j))
    spec = PrefetchScalarGridSpec(
        4,
        grid=(-(-n // tile_n), of.group.shape[0], rows.shape[1] // tile_k),
        in_specs=[
            BlockSpec((tile_m, tile_k), lambda j, v, i, g, t, *_: (t[v], i)),
            BlockSpec(block, of_matrix),
        ],
        out_specs=BlockSpec((tile_m, tile_n), lambda j, v, i, g, t, *_: (t[v], j)),
        scratch_shapes=[VMEM((tile_m, tile_n), np.float32)],
    )
    call = pallas_call(
        functools.partial(_rows_kernel, how.across),
        _result(how, rows, (m, n)),
        grid_spec=spec,
        name="grouped_matmul",
        compiler_params=Hints(("parallel", "arbitrary", "arbitrary")),
    )
    return call(*of, rows, matrices)


def _rows_kernel(across: bool, *refs: Any) -> None:
    of, (rows, matrix, out, total) = Visits(*refs[:4]), refs[4:]
    visit, step = program_id(1), program_id(2)

    @when(step == 0)
    def _start() -> None:
        total[...] = jnp.zeros(total.shape, total.dtype)

    numbers = (((1,), (1 if across else 0,)), ((), ()))
    total[...] += lax.dot_general(rows[...], matrix[...], numbers, preferred_element_type=np.float32)

    @when(step == num_programs(2) - 1)
    def _end() -> None:
        is_first = _is_other(of.tile, visit, visit - 1, 0)
        before = jnp.where(is_first, 0.0, out[...].astype(np.float32))
        out[...] = jnp.where(_is_own(of, visit, out.shape), total[...], before).astype(out.dtype)


def _groups_in_grid(how: Grouped, x: Any, y: Any, counts: Any) -> Any:
    (m, k), n = x.shape, y.shape[1]
    tile_m, tile_k, tile_n = _tile(how, m, k, n)
    of = visits(counts, m, tile_m)
    spec = PrefetchScalarGridSpec(
        4,
        grid=(-(-k // tile_k), -(-n // tile_n), of.group.shape[0]),
        in_specs=[
            BlockSpec((tile_m, tile_k), lambda i, j, v, g, t, *_: (t[v], i)),
            BlockSpec((tile_m, tile_n), lambda i, j, v, g, t, *_: (t[v], j)),
        ],
        out_specs=BlockSpec((None, tile_k, tile_n), lambda i, j, v, g, *_: (g[v], i, j)),
        scratch_shapes=[VMEM((tile_k, tile_n), np.float32)],
    )
    call = pallas_call(
        _groups_kernel,
        _result(how, x, (counts.shape[0], k, n)),
        grid_spec=spec,
        name="grouped_outer",
        compiler_params=Hints(("parallel", "parallel", "arbitrary")),
    )
    return call(*of, x, y)


def _groups_kernel(*refs: Any) -> None:
    of, (x, y, out, total) = Visits(*refs[:4]), refs[4:]
    visit, last = program_id(2), num_programs(2) - 1

    @when(_is_other(of.group, visit, visit - 1, 0))
    def _start() -> None:
        total[...] = jnp.zeros(total.shape, total.dtype)

    own_x, own_y = (jnp.where(_is_own(of, visit, ref.shape), ref[...], 0) for ref in (x, y))
    total[...] += lax.dot_general(own_x, own_y, (((0,), (0,)), ((), ())), preferred_element_type=np.float32)

    @when(_is_other(of.group, visit, visit + 1, last))
    def _end() -> None:
        out[...] = total[...].astype(out.dtype)


# --- in a loop


_TILE = 128, 64, 128
"""Rows, summed features and columns in a loop; where rows are summed, these and the features change places."""


def _rows_in_loop(how: Grouped, rows: Any, matrices: Any, counts: Any) -> Any:
    m, n, groups = rows.shape[0], matrices.shape[1 if how.across else 2], counts.shape[0]
    tile_m, tile_k, tile_n = _TILE
    more = -rows.shape[1] % tile_k, -n % tile_n
    rows = _padded(rows, (-m % tile_m, more[0]))
    matrices = _padded(matrices, (0, *(more[::-1] if how.across else more)))
    of = visits(counts, m, tile_m, with_rest=True)

    def kernel(*refs: Any) -> None:
        at, (rows, matrices, out) = Visits(*refs[:4]), refs[4:]
        visit, columns = program_id(1), ds(program_id(0) * tile_n, tile_n)
        start, group = at.tile[visit] * tile_m, at.group[visit]

        def add(i: Any, total: Any) -> Any:
            features = ds(i * tile_k, tile_k)
            matrix = matrices[(group, columns, features) if how.across else (group, features, columns)]
            return total + product(rows[ds(start, tile_m), features], matrix, (1, 1 if how.across else 0))

        steps = jnp.where(group < groups, np.int32(rows.shape[1] // tile_k), np.int32(0))
        total = fori_loop(0, steps, add, jnp.zeros((tile_m, tile_n), np.float32))
        own = _between(at.first[visit], at.stop[visit], start, total.shape)
        store(out.at[ds(start, tile_m), columns], total.astype(out.dtype), mask=own)

    out = _result(how, rows, (rows.shape[0], padded_to(n, tile_n)))
    call = pallas_call(
        kernel,
        out,
        grid=(out.shape[1] // tile_n, of.group.shape[0]),
        name="grouped_matmul",
        compiler_params=Hints(num_warps=8, num_stages=3),
    )
    return call(*of, rows, matrices)[:m, :n]


def _groups_in_loop(how: Grouped, x: Any, y: Any, counts: Any) -> Any:
    (m, k), n = x.shape, y.shape[1]
    tile_k, tile_m, tile_n = _TILE
    x, y = _padded(x, (-m % tile_m, -k % tile_k)), _padded(y, (-m % tile_m, -n % tile_n))
    stops = _stops(counts, m)
    out = _result(how, x, (counts.shape[0], x.shape[1], y.shape[1]))

    def kernel(firsts: Any, stops: Any, x: Any, y: Any, out: Any) -> None:
        group = program_id(2)
        left, right = ds(program_id(0) * tile_k, tile_k), ds(program_id(1) * tile_n, tile_n)
        stop, first = stops[group], firsts[group]

        def add(i: Any, total: Any) -> Any:
            own = _between(first, stop, i * tile_m, (tile_m, tile_k))
            part = jnp.where(own, x[ds(i * tile_m, tile_m), left], 0)
            return total + product(part, y[ds(i * tile_m, tile_m), right], (0, 0))

        last = lax.div(stop + (tile_m - 1), np.int32(tile_m))
        total = jnp.zeros((tile_k, tile_n), np.float32)
        out[group, left, right] = fori_loop(lax.div(first, np.int32(tile_m)), last, add, total).astype(out.dtype)

    call = pallas_call(
        kernel,
        out,
        grid=(out.shape[1] // tile_k, out.shape[2] // tile_n, counts.shape[0]),
        name="grouped_outer",
        compiler_params=Hints(num_warps=8, num_stages=3),
    )
    return call(jnp.concatenate([jnp.zeros(1, np.int32), stops[:-1]]), stops, x, y)[:, :k, :n]


# --- helpers


def _result(how: Grouped, rows: Any, shape: Sequence[int]) -> ShapeDtypeStruct:
    """The type of a kernel's result: of float32s, which a TPU may have in place of float16s, it is no float16."""
    is_wide = how.dtype == np.float16 and rows.dtype == np.float32
    return ShapeDtypeStruct(shape, rows.dtype if is_wide else how.dtype)


def _tile(how: Grouped, *sizes: int) -> tuple[int, ...]:
    """The sizes of tiles, no larger than the arrays are."""
    least = 16, 128, 128
    return tuple(min(t, padded_to(n, x)) if n > x else n for t, n, x in zip(how.tile, sizes, least, strict=True))


def _padded(x: Any, more: Sequence[int]) -> Any:
    return jnp.pad(x, [(0, n) for n in more]) if any(more) else x
