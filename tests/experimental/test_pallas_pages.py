"""Programs in the shape of those on JAX's own pages about Pallas, with the import changed, against NumPy.

Each gives the same values in JAX 0.10.2, with `interpret=True`.
"""
from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini as jax
import xlamini.numpy as jnp
from tests.support.checks import assert_close
from xlamini import lax
from xlamini.experimental import checkify, pallas as pl
from xlamini.experimental.pallas import tpu as pltpu

S = jax.ShapeDtypeStruct
RANDOM = np.random.default_rng(0)
X, Y, V = (RANDOM.standard_normal(shape).astype("float32") for shape in ((32, 48), (48, 16), (8,)))
Program = Callable[[Any], tuple[Any, Any]]
PROGRAMS: dict[str, Program] = {}


def page(program: Program) -> Program:
    """A program of a page: it takes `pallas_call`, and returns its value and NumPy's."""
    PROGRAMS[program.__name__] = program
    return program


@pytest.mark.parametrize("interpret", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_program(name: str, interpret: bool) -> None:
    found, expected = PROGRAMS[name](functools.partial(pl.pallas_call, interpret=interpret))
    assert_close(found, expected, 1e-5, name)


def add_one(x: Any, o: Any) -> None:
    o[...] = x[...] + 1


# --- quickstart


@page
def add_vectors(call: Any) -> Any:
    def kernel(x: Any, y: Any, o: Any) -> None:
        a, b = x[...], y[...]
        o[...] = a + b

    @jax.jit
    def add(x: Any, y: Any) -> Any:
        return call(kernel, out_shape=S(x.shape, x.dtype))(x, y)

    return add(jnp.arange(8), jnp.arange(8)), 2 * np.arange(8)


@page
def numbers_of_programs(call: Any) -> Any:
    def kernel(o: Any) -> None:
        i = pl.program_id(0)
        o[i] = i

    everything = pl.BlockSpec(memory_space=pltpu.SMEM)
    return call(kernel, out_specs=everything, out_shape=S((8,), jnp.int32), grid=(8,))(), np.arange(8)


def matmul(call: Any, x: Any, y: Any, *, activation: Any) -> Any:
    def kernel(x: Any, y: Any, z: Any, *, activation: Any) -> None:
        z[...] = activation(x[...] @ y[...])

    return call(
        functools.partial(kernel, activation=activation),
        out_shape=S((x.shape[0], y.shape[1]), x.dtype),
        grid=(2, 2),
        in_specs=[
            pl.BlockSpec((x.shape[0] // 2, x.shape[1]), lambda i, j: (i, 0)),
            pl.BlockSpec((y.shape[0], y.shape[1] // 2), lambda i, j: (0, j)),
        ],
        out_specs=pl.BlockSpec((x.shape[0] // 2, y.shape[1] // 2), lambda i, j: (i, j)),
    )(x, y)


@page
def product_in_blocks_with_activation(call: Any) -> Any:
    return matmul(call, X, Y, activation=jax.nn.relu), np.maximum(X @ Y, 0)


@page
def batch_of_products(call: Any) -> Any:
    mapped = jax.vmap(functools.partial(matmul, call, activation=jax.nn.relu))
    return mapped(np.stack([X, -X]), np.stack([Y, Y])), np.maximum(np.stack([X @ Y, -X @ Y]), 0)


@page
def softmax_of_rows(call: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        row = x[...]
        powers = jnp.exp(row - jnp.max(row, axis=-1))
        o[...] = powers / jnp.sum(powers, axis=-1)

    powers = np.exp(X - X.max(-1, keepdims=True))
    rows = jax.vmap(lambda row: call(kernel, out_shape=S(row.shape, row.dtype))(row))(X)
    return rows, powers / powers.sum(-1, keepdims=True)


# --- grids and blocks


def ids(o: Any) -> None:
    """Fill a block with the digits of the program's place in the grid."""
    o[...] = jnp.full(o.shape, 10 * pl.program_id(0) + pl.program_id(1))


def in_blocks(grid: tuple[int, int], block: tuple[int, int], shape: tuple[int, int], skip: tuple[int, int]) -> Any:
    places = np.add.outer(10 * np.arange(grid[0]), np.arange(grid[1]))
    rows, columns = skip
    return np.kron(places, np.ones(block))[rows : rows + shape[0], columns : columns + shape[1]]


@pytest.mark.parametrize("shape", [(8, 6), (7, 5), (1, 2)])
def test_each_block_has_the_number_of_its_program(shape: tuple[int, int]) -> None:
    grid, out = (pl.cdiv(shape[0], 2), pl.cdiv(shape[1], 3)), pl.BlockSpec((2, 3), lambda i, j: (i, j))
    found = pl.pallas_call(ids, out_shape=S(shape, np.int32), grid=grid, in_specs=[], out_specs=out)()
    assert found.tolist() == in_blocks(grid, (2, 3), shape, (0, 0)).tolist()


@pytest.mark.parametrize(("shape", "skip"), [((8, 9), (0, 0)), ((7, 7), (1, 2))])
def test_elements_are_counted_with_their_padding(shape: tuple[int, int], skip: tuple[int, int]) -> None:
    rows, columns = (pl.Element(size, (low, 0)) for size, low in zip((2, 3), skip, strict=True))
    out = pl.BlockSpec((rows, columns), lambda i, j: (2 * i, 3 * j))
    found = pl.pallas_call(ids, out_shape=S(shape, np.int32), grid=(4, 3), in_specs=[], out_specs=out)()
    assert found.tolist() == in_blocks((4, 3), (2, 3), shape, skip).tolist()


@pytest.mark.parametrize("spec", [pl.BlockSpec(None, None), pl.BlockSpec((4, 4), None), pl.no_block_spec])
def test_the_last_program_writes_the_whole_array(spec: Any) -> None:
    found = pl.pallas_call(ids, out_shape=S((4, 4), np.int32), grid=(2, 3), in_specs=[], out_specs=spec)()
    assert found.tolist() == np.full((4, 4), 12).tolist()


@page
def windows_with_padding(call: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        places = pl.program_id(0) + lax.broadcasted_iota(jnp.int32, (3,), 0)
        o[0] = jnp.where((places > 0) & (places < 9), x[...], 0).sum()

    three, one = pl.BlockSpec((pl.Element(3, (1, 1)),), lambda i: (i,)), pl.BlockSpec((1,), lambda i: (i,))
    found = call(kernel, out_shape=S((8,), "float32"), grid=8, in_specs=[three], out_specs=one)(V)
    return found, np.convolve(V, np.ones(3), "same")


@page
def squeezed_rows(call: Any) -> Any:
    def kernel(o: Any) -> None:
        assert o.shape == (2,)
        o[...] = jnp.full((2,), 10 * pl.program_id(1) + pl.program_id(0))

    out = pl.BlockSpec((None, 2), lambda i, j: (i, j))
    return call(kernel, S((3, 4), np.int32), out_specs=out, grid=(3, 2))(), in_blocks((2, 3), (2, 1), (4, 3), (0, 0)).T


# --- pipelines


@page
def sum_over_an_axis_of_the_grid(call: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            o[...] = jnp.zeros_like(o)

        o[...] += x[...]

    x = np.arange(48, dtype="float32").reshape(3, 4, 4)
    found = call(
        kernel,
        grid=(2, 2, 3),
        in_specs=[pl.BlockSpec((None, 2, 2), lambda i, j, k: (k, i, j))],
        out_specs=pl.BlockSpec((2, 2), lambda i, j, k: (i, j)),
        out_shape=S((4, 4), "float32"),
    )(x)
    return found, x.sum(0)


def accumulate(x: Any, y: Any, z: Any, total: Any, *, steps: int, activation: Any) -> None:
    @pl.when(pl.program_id(2) == 0)
    def _() -> None:
        total[...] = jnp.zeros_like(total)

    dims = ((1,), (1,)), ((), ())
    total[...] += lax.dot_general(x[...], y[...], dims, preferred_element_type=jnp.float32)

    @pl.when(pl.program_id(2) == steps - 1)
    def _() -> None:
        z[...] = activation(total[...]).astype(z.dtype)


@functools.partial(jax.jit, static_argnames=["call", "bm", "bk", "bn", "activation"])
def tpu_matmul(x: Any, y: Any, *, call: Any, bm: int, bk: int, bn: int, activation: Any) -> Any:
    (m, k), n = x.shape, y.shape[0]
    return call(
        functools.partial(accumulate, steps=k // bk, activation=activation),
        grid_spec=pltpu.PrefetchScalarGridSpec(
            num_scalar_prefetch=0,
            in_specs=[pl.BlockSpec((bm, bk), lambda i, j, k: (i, k)), pl.BlockSpec((bn, bk), lambda i, j, k: (j, k))],
            out_specs=pl.BlockSpec((bm, bn), lambda i, j, k: (i, j)),
            scratch_shapes=[pltpu.VMEM((bm, bn), jnp.float32)],
            grid=(m // bm, n // bn, k // bk),
        ),
        out_shape=S((m, n), x.dtype),
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "parallel", "arbitrary")),
    )(x, y)


@page
def product_of_bfloat16_in_scratch_memory(call: Any) -> Any:
    x, y = jnp.round(X).astype(jnp.bfloat16), jnp.round(Y.T).astype(jnp.bfloat16)
    found = tpu_matmul(x, y, call=call, bm=16, bk=16, bn=8, activation=jax.nn.relu)
    return found.astype("float32"), np.maximum(np.round(X) @ np.round(Y), 0)


# --- prefetched scalars


def block_slice(x: Any, starts: Any, sizes: tuple[int, int], call: Any) -> Any:
    def kernel(indices: Any, x: Any, o: Any) -> None:
        del indices
        o[...] = x[...]

    for start, size in zip(starts, sizes, strict=True):
        checkify.check(start % size == 0, "starts must be divisible by sizes")
    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(1, 1),
        in_specs=[pl.BlockSpec(sizes, lambda i, j, block: (block[0], block[1]))],
        out_specs=pl.BlockSpec(sizes, lambda *_: (0, 0)),
    )
    block = jnp.array([start // size for start, size in zip(starts, sizes, strict=True)])
    return call(kernel, grid_spec=grid_spec, out_shape=S(shape=sizes, dtype=x.dtype))(block, x)


@page
def slice_of_blocks(call: Any) -> Any:
    checked = jax.jit(checkify.checkify(functools.partial(block_slice, sizes=(8, 8), call=call)))
    error, found = checked(X, (8, 24))
    error.throw()
    assert checked(X, (4, 24))[0].get() is not None
    return found, X[8:16, 24:32]


def dense_of_sparse(of_row: Any, of_column: Any, x: Any, y: Any, _: Any, o: Any, total: Any) -> None:
    del of_column
    block, last = pl.program_id(1), pl.num_programs(1) - 1
    starts = (block == 0) | (of_row[block] != of_row[jnp.maximum(block - 1, 0)])
    ends = (block == last) | (of_row[block] != of_row[jnp.minimum(block + 1, last)])

    @pl.when(starts)
    def _() -> None:
        total[...] = jnp.zeros_like(total)

    total[...] += jnp.dot(x[0, :, :], y[...], preferred_element_type=jnp.float32)

    @pl.when(ends)
    def _() -> None:
        o[...] = total[...].astype(o.dtype)


@page
def product_of_a_matrix_of_blocks(call: Any) -> Any:
    mask = np.array([[1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0]], bool)
    rows, columns = np.nonzero(mask)
    blocks, y = RANDOM.standard_normal((len(rows), 4, 4)).astype("float32"), X[:16, :8]
    out = pl.BlockSpec((4, 4), lambda j, b, of_row, of_column: (of_row[b], j))
    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=2,
        grid=(2, len(rows)),
        in_specs=[
            pl.BlockSpec((1, 4, 4), lambda j, b, of_row, of_column: (b, 0, 0)),
            pl.BlockSpec((4, 4), lambda j, b, of_row, of_column: (of_column[b], j)),
            out,
        ],
        out_specs=out,
        scratch_shapes=[pltpu.VMEM((4, 4), dtype=jnp.float32)],
    )
    kernel = call(dense_of_sparse, grid_spec=grid_spec, out_shape=S((16, 8), "float32"), input_output_aliases={4: 0})
    dense = np.zeros((4, 4, 4, 4), "float32")
    dense[rows, :, columns] = blocks
    return kernel(*np.int32([rows, columns]), blocks, y, np.zeros((16, 8), "float32")), dense.reshape(16, 16) @ y


@page
def product_of_groups(call: Any) -> Any:
    """The rows of each group have a matrix of their own, which the block of rows looks up."""

    def kernel(groups: Any, x: Any, w: Any, o: Any) -> None:
        o[...] = x[...] @ w[...]

    groups = np.array([0, 0, 2, 1], np.int32)
    weights = RANDOM.standard_normal((3, 48, 16)).astype("float32")
    grid_spec = pltpu.PrefetchScalarGridSpec(
        num_scalar_prefetch=1,
        grid=(4,),
        in_specs=[
            pl.BlockSpec((8, 48), lambda i, groups: (i, 0)),
            pl.BlockSpec((None, 48, 16), lambda i, groups: (groups[i], 0, 0)),
        ],
        out_specs=pl.BlockSpec((8, 16), lambda i, groups: (i, 0)),
    )
    found = call(kernel, grid_spec=grid_spec, out_shape=S((32, 16), "float32"))(groups, X, weights)
    return found, (X.reshape(4, 8, 48) @ weights[groups]).reshape(32, 16)


# --- refs


@page
def parts_of_refs(call: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        part = x.at[2:6]
        o.at[0:4][...] = part[...]
        o[pl.ds(4, 2)] = part.at[pl.ds(0, 2)][...]
        o[6:] = jnp.full(2, x[-1]) + x[...][None, :3][0, 0]

    return call(kernel, out_shape=S((8,), "float32"))(V), np.r_[V[2:6], V[2:4], [V[-1] + V[0]] * 2]


@page
def loop_that_writes_refs(call: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = jnp.zeros_like(o)

        def body(i: Any, carry: Any) -> None:
            o[...] += x[i] * i

        lax.fori_loop(0, x.shape[0], body, None)

    return call(kernel, out_shape=S((48,), "float32"))(X), np.arange(32.0) @ X


@page
def loop_over_parts(call: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        @pl.loop(0, 8, step=2)
        def _(i: Any) -> None:
            start = pl.multiple_of(i, 2)
            o[pl.ds(start, 2)] = x[pl.ds(start, 2)] * pl.num_programs(0)

    return call(kernel, out_shape=S((8,), "float32"), grid=2)(V), 2 * V


@page
def conditions_in_conditions(call: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            o[...] = jnp.zeros_like(o)

            @pl.when(x[0] > -100)
            def _() -> None:
                o[...] = x[...]

        @pl.when(True)
        def _() -> None:
            o[...] += 1

    return call(kernel, out_shape=S((8,), "float32"), grid=(2,))(V), V + 2


@page
def memory_in_a_scope(call: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        def body(buffer: Any, total: Any) -> Any:
            buffer[...] = 2 * x[...]
            total[...] = buffer[...].sum(keepdims=True)
            return total[...]

        o[...] = pl.run_scoped(body, buffer=pltpu.VMEM((8,), jnp.float32), total=pltpu.VMEM((1,), jnp.float32))

    return call(kernel, out_shape=S((1,), "float32"))(V), [2 * V.sum()]


@page
def turned_rows(call: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = pltpu.roll(pltpu.roll(x[...], pl.program_id(0), 0), 3, 1, stride=2, stride_axis=0)

    expected = [np.roll(row, 3 + 2 * i) for i, row in enumerate(np.roll(X, 1, 0))]
    return call(kernel, out_shape=S(X.shape, "float32"), grid=2)(X), expected


@page
def bits_of_narrow_numbers(call: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        same = pltpu.bitcast(pltpu.bitcast(x[...], jnp.int16), jnp.float32)
        o[...] = same + pl.reciprocal(pl.broadcast_to(2.0, (8,)))

    return call(kernel, out_shape=S((4, 8), "float32"))(X[:4, :8]), X[:4, :8] + 0.5


# --- operands and results


@page
def containers_of_operands(call: Any) -> Any:
    def kernel(d: Any, nothing: Any, s: Any, o: Any) -> None:
        o["sum"][...] = d["a"][...] * d["b"][0] + s[...]

    found = call(kernel, out_shape={"sum": S((8,), "float32")})({"a": V, "b": V}, None, 2.0)
    return found["sum"], V * V[0] + 2


@page
def some_operands_in_blocks(call: Any) -> Any:
    def kernel(nothing: Any, x: Any, y: Any, o: Any) -> None:
        o[...] = x[...] + y[...].sum()

    half = pl.BlockSpec((4,), lambda i: (i,))
    specs = [None, half, pl.no_block_spec]
    return call(kernel, out_shape=jnp.zeros(8), grid=2, in_specs=specs, out_specs=half)(None, V, V), V + V.sum()


@page
def scalar_in_its_memory(call: Any) -> Any:
    def kernel(s: Any, x: Any, o: Any) -> None:
        o[...] = x[...] * s[0, 0]

    specs = [pl.BlockSpec((1, 1), memory_space=pltpu.SMEM), pl.BlockSpec(memory_space=pltpu.VMEM)]
    return call(kernel, out_shape=S((8,), "float32"), in_specs=specs)(np.float32([[3]]), V), 3 * V


@page
def result_in_the_place_of_an_operand(call: Any) -> Any:
    in_place = jax.jit(call(add_one, out_shape=S((8,), "float32"), input_output_aliases={0: 0}), donate_argnums=0)
    return in_place(jnp.array(V)), V + 1


def test_several_results_are_a_tuple_as_in_jax() -> None:
    def kernel(x: Any, o: Any, total: Any) -> None:
        o[...], total[...] = x[...], x[...].sum()

    found = pl.pallas_call(kernel, out_shape=[S((8,), "float32"), S((), "float32")])(V)
    assert isinstance(found, tuple) and len(found) == 2 and found[1].shape == ()
    assert pl.pallas_call(lambda x: None, out_shape=())(V) == ()


@page
def no_grid_and_the_options(call: Any) -> Any:
    cost = pl.CostEstimate(flops=8, transcendentals=0, bytes_accessed=64)
    params = pltpu.CompilerParams(vmem_limit_bytes=2**20, flags={"a": 1})
    options = {"cost_estimate": cost, "compiler_params": params, "name": "one_more", "debug": False}
    return call(add_one, out_shape=S((8,), "float32"), grid=(), **options)(V), V + 1


# --- around kernels


@page
def gradient(call: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = jnp.sin(x[...]) * x[...]

    return jax.grad(lambda x: call(kernel, out_shape=S((8,), "float32"))(x).sum())(V), np.cos(V) * V + np.sin(V)


@page
def transformations_inside(call: Any) -> Any:
    double = jax.jit(lambda x: 2 * x)

    def kernel(x: Any, o: Any) -> None:
        o[...] = double(jax.vmap(jnp.sum)(jax.grad(lambda v: jnp.sum(v**3))(x[...])))

    return call(kernel, out_shape=S((32,), "float32"))(X), 6 * (X**2).sum(1)


@page
def exported_function(call: Any) -> Any:
    export = importlib.import_module("xlamini.export")
    function = jax.jit(call(add_one, out_shape=S((8,), "float32")))
    kept = export.export(function)(S((8,), "float32")).serialize()
    return export.deserialize(kept).call(V), V + 1


@page
def one_kernel_on_the_result_of_another(call: Any) -> Any:
    kernel = call(add_one, out_shape=S((8,), "float32"))
    return kernel(kernel(V)), V + 2
