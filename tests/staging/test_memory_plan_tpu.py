"""Memory plans for a TPU: closed forms of tiles, bfloat16, fusion, memory on the chip; tests/aot asks the compiler."""
from __future__ import annotations

from typing import Any

import pytest

import xlamini
import xlamini.numpy as jnp
from tests.support.memory_programs import array
from xlamini import lax
from xlamini.staging.compile.memory_plan import MemoryPlan, memory_plan

N = 256
BYTES = 4 * N * N
X, Y = array(N, N), array(N, N)


def plan_of(fun: Any, *args: Any, scratch: int = 0) -> MemoryPlan:
    jaxpr = xlamini.make_jaxpr(fun)(*args).jaxpr
    return memory_plan("f", jaxpr, (False,) * len(jaxpr.invars), "tpu", scratch)


def temporaries(fun: Any, *args: Any) -> int:
    return plan_of(fun, *args).temporaries


@pytest.mark.parametrize(
    ("shape", "dtype", "size"),
    [
        ((256, 256), "float32", 4 * 256 * 256),
        ((1000, 7), "float32", 4 * 1024 * 8),  # columns along the first dimension
        ((3, 3, 3, 32), "float32", 4 * 9 * 4 * 128),  # a tile of four rows
        ((50, 33, 77), "float32", 4 * 33 * 56 * 128),
        ((1, 1000), "float32", 4 * 1024),
        ((1, 1000), "bfloat16", 2 * 2 * 1024),  # two elements share a word
        ((1, 1000), "int8", 4 * 1024),
        ((3,), "float32", 512),
        ((300,), "float32", 4 * 512),
        ((1100,), "float32", 4 * 2048),
        ((0, 5), "float32", 0),
    ],
)
def test_arrays_are_padded_to_tiles(shape: tuple[int, ...], dtype: str, size: int) -> None:
    plan = plan_of(lambda x: x, array(*shape, dtype=dtype))
    assert (plan.arguments, plan.results) == (size, size)


def test_what_only_products_read_is_bfloat16() -> None:
    plan = plan_of(lambda x, y: jnp.tanh(x @ y) @ y, X, Y)
    assert [(value.type, value.bytes) for value in plan.held] == [(f"bf16[{N},{N}]", BYTES // 2)]
    assert temporaries(lambda x, y: (z := jnp.tanh(x @ y)).sum(0) + (z @ y)[0], X, Y) == BYTES // 2 + 4 * N
    assert temporaries(lambda x, y: (z := jnp.tanh(x @ y)) @ y + z, X, Y) == BYTES


def test_the_precision_of_products_keeps_float32() -> None:
    with xlamini.default_matmul_precision("highest"):
        assert temporaries(lambda x, y: jnp.tanh(x @ y) @ y, X, Y) == BYTES


def test_a_loop_may_read_bfloat16() -> None:
    def program(xs: Any, y: Any) -> Any:
        return lax.scan(lambda c, x: (c @ x, None), y, jnp.tanh(jnp.einsum("tij,jk->tik", xs, y)))[0]

    held = {value.type for value in plan_of(program, array(9, N, N), Y).held}
    assert f"bf16[9,{N},{N}]" in held


def test_what_a_loop_returns_is_not_rounded() -> None:
    def body(c: Any, x: Any) -> Any:
        c = jnp.tanh(c @ x)
        return c, (c @ x).sum()

    held = {value.type for value in plan_of(lambda xs, y: lax.scan(body, y, xs)[1], array(9, N, N), Y).held}
    assert f"f32[{N},{N}]" in held and f"bf16[{N},{N}]" not in held


def test_elementwise_operations_are_in_the_loops_of_products() -> None:
    assert temporaries(lambda x, y: jnp.exp(x) @ y + jnp.exp(x) @ x, X, Y) == BYTES  # one of two products
    assert temporaries(lambda x, y: jnp.exp(x @ y) * 2.0, X, Y) == 0
    assert temporaries(lambda x, y: ((x @ y - 1.0) ** 2).sum(), X, Y) == 0


def test_a_product_waits_for_no_later_value() -> None:
    def program(x: Any, y: Any) -> Any:
        early = x @ y
        return early + jnp.cumsum(jnp.sin(x), 0)

    assert f"f32[{N},{N}]" in {value.type for value in plan_of(program, X, Y).held if value.variable == "early"}


def test_joins_gathers_and_transposes_copy() -> None:
    assert temporaries(lambda x, y: 2.0 * jnp.concatenate([jnp.sin(x), jnp.cos(y)]), X, Y) == 2 * BYTES
    assert temporaries(lambda x: jnp.pad(x * 2.0, 8) + 1.0, X) == BYTES
    assert temporaries(lambda x: x.T + x, X) == BYTES
    assert temporaries(lambda x: jnp.flip(x, 0) + x, X) == BYTES
    assert temporaries(lambda x, i: x[i] * 2.0, X, array(N, dtype="int32")) // BYTES == 1
    assert temporaries(lambda x, i: jnp.sin(x)[i] * 2.0, X, array(N, dtype="int32")) // BYTES == 2
    assert temporaries(lambda x, y: x.T @ y.T, X, Y) == 0


def test_a_scatter_of_one_element_to_each_row_is_a_comparison() -> None:
    def loss(x: Any, i: Any) -> Any:
        return jnp.take_along_axis(x, i[:, None], 1).sum()

    assert temporaries(lambda x, i: 2.0 * xlamini.grad(loss)(x, i), X, array(N, dtype="int32")) < BYTES
    updated = lambda x, i, u: 2.0 * (x * 2.0).at[i].add(u)
    assert temporaries(updated, X, array(N, dtype="int32"), Y) == BYTES + 4 * N  # in its operand's memory; indices


def test_what_fits_is_on_the_chip() -> None:
    program = lambda x, y: jnp.tanh(jnp.tanh(x @ x) @ y) @ y
    plan = plan_of(program, X, Y)
    assert (plan.temporaries, plan.on_chip) == (BYTES, 0)
    chip = plan_of(program, X, Y, scratch=4 * BYTES)
    assert (chip.temporaries, chip.on_chip) == (0, BYTES)
    half = plan_of(program, X, Y, scratch=3 * BYTES // 2)  # an argument is copied there too
    assert (half.temporaries, half.on_chip) == (BYTES // 2, BYTES // 2)
    assert "Of these 128 KiB are in memory on the chip, which is not counted." in repr(half)
    assert half.as_dict()["on_chip"] == BYTES // 2
    updated = plan_of(lambda x, i: 2.0 * (x @ x).at[i].add(1.0), X, array(dtype="int32"), scratch=4 * BYTES)
    assert (updated.temporaries, updated.on_chip // BYTES) == (0, 1)  # both results are in one place
