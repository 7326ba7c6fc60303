"""Loops over narrow floats on the CPU: the bits are carried, nothing as large as the array is converted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini as jax
import xlamini.numpy as jnp
from xlamini import lax

SIZE = 96
DTYPES = ("bfloat16", "float8_e4m3fn", "float8_e5m2")


def rows() -> Any:
    return jnp.asarray(np.random.default_rng(0).integers(-8, 9, (SIZE, 32)) / 4, "float32")


def stacked(x: Any) -> Any:
    return lax.scan(lambda carry, row: (carry + row, carry), jnp.zeros(32, x.dtype), x)[1]


def set_row_by_row(x: Any) -> Any:
    return lax.fori_loop(1, SIZE, lambda i, y: y.at[i].set(y[i - 1] - y[i]), x)


def shifted(x: Any) -> Any:
    return lax.fori_loop(
        0, SIZE // 2, lambda i, y: lax.dynamic_update_slice(y, lax.dynamic_slice(y, (i, 0), (1, 32)), (2 * i, 0)), x
    )


def until_large(x: Any) -> Any:
    def more(state: Any) -> Any:
        return (state[1] < SIZE) & (jnp.abs(state[0]).max() < 100)

    return lax.while_loop(
        more, lambda state: (state[0].at[state[1]].set(state[0][state[1]] * 2), state[1] + 1), (x, 0)
    )[0]


PROGRAMS = (stacked, set_row_by_row, shifted, until_large, lambda x: jnp.cumsum(x, 0), lambda x: lax.cummax(x, 0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("program", PROGRAMS)
def test_values_are_those_of_each_step_rounded(program: Callable[[Any], Any], dtype: str) -> None:
    """The same steps one by one, outside of a compiled program; few of them, where numbers are exact."""
    x = rows().astype(dtype)[: SIZE if program in (set_row_by_row, shifted, until_large) else 6]
    ours = jax.jit(program)(x)
    with jax.disable_jit():
        theirs = program(x)
    assert ours.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(ours, np.float32), np.asarray(theirs, np.float32))


@pytest.mark.parametrize("program", PROGRAMS[:3])
def test_no_step_converts_the_whole_array(program: Callable[[Any], Any]) -> None:
    compiled = jax.jit(program).lower(rows().astype("bfloat16")).compile().as_text()
    body = compiled[: compiled.index("ENTRY")]
    assert f"u16[{SIZE},32]" in body
    assert f"f32[{SIZE},32]" not in body


def test_the_gradient_of_a_scan_of_bfloat16() -> None:
    x = rows().astype("bfloat16")

    def loss(x: Any) -> Any:
        return stacked(x).astype("float32").sum()

    expected = np.arange(SIZE - 1, -1, -1, dtype=np.float32)[:, None]
    gradient = np.asarray(jax.jit(jax.grad(loss))(x), np.float32)
    np.testing.assert_allclose(gradient, np.broadcast_to(expected, (SIZE, 32)), rtol=2**-7)


def test_bits_of_a_nan_are_kept() -> None:
    """A signaling NaN, which a conversion to float32 and back would make a quiet one."""
    bits = np.full((4, 8), 0x7F81, np.uint16)
    x = lax.bitcast_convert_type(jnp.asarray(bits), jnp.bfloat16)
    moved = jax.jit(lambda x: lax.fori_loop(0, 3, lambda i, y: y.at[i].set(y[3 - i]), x))(x)
    np.testing.assert_array_equal(lax.bitcast_convert_type(moved, jnp.uint16), bits)


def test_other_platforms_carry_the_floats() -> None:
    traced = jax.jit(stacked).trace(rows().astype("bfloat16"))
    assert "bitcast_convert" in traced.lower(lowering_platforms=("cpu",)).as_text()
    assert "bitcast_convert" not in traced.lower(lowering_platforms=("cuda",)).as_text()
