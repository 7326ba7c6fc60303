"""Products whose batch dimensions are not the first: their numbers, and how XLA is given them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlamini as jax
import xlamini.numpy as jnp
from xlamini import lax

RNG = np.random.default_rng(0)
DTYPES = ["float32", "float64", "bfloat16", "float16", "int8", "int32", "complex64"]
NUMBERS = [
    # the shapes of the operands, their contracting and their batch dimensions
    ((2, 3, 4, 5), (2, 6, 4, 5), ((3,), (3,)), ((0, 2), (0, 2))),
    ((2, 4, 3, 6), (2, 6, 4, 5), ((3,), (1,)), ((0, 1), (0, 2))),
    ((3, 2), (4, 2), ((), ()), ((1,), (1,))),
    ((3, 2, 5), (2, 5), ((2,), (1,)), ((1,), (0,))),
    ((3, 4, 2), (5, 4, 3, 2), ((0, 1), (2, 1)), ((2,), (3,))),
    ((4, 3, 2), (3, 5, 4, 2), ((1,), (0,)), ((2, 0), (3, 2))),
]


def operand(shape: tuple[int, ...], dtype: str) -> Any:
    numbers = RNG.integers(-3, 4, shape)
    return np.asarray(numbers + 1j * RNG.integers(-3, 4, shape) if dtype == "complex64" else numbers, dtype)


def by_numpy(x: Any, y: Any, contract: Any, batch: Any) -> Any:
    letters = "abcdefghij"
    left = list(letters[: x.ndim])
    right = [""] * y.ndim
    for i, j in [*zip(*contract, strict=True), *zip(*batch, strict=True)]:
        right[j] = left[i]
    rest = iter(letters[x.ndim :])
    right = [c or next(rest) for c in right]
    shared = [left[i] for i in batch[0]]
    gone = {left[i] for i in contract[0]} | set(shared)
    out = shared + [c for c in left if c not in gone] + [c for c in right if c not in gone]
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    return np.einsum(f"{''.join(left)},{''.join(right)}->{''.join(out)}", x.astype(wide), y.astype(wide))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("left", "right", "contract", "batch"), NUMBERS)
def test_values(left: Any, right: Any, contract: Any, batch: Any, dtype: str) -> None:
    with jax.enable_x64(True):
        x, y = (operand(s, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype) for s in (left, right))
        found = jax.jit(lambda x, y: lax.dot_general(x, y, (contract, batch)))(x, y)
        assert found.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(found).astype(complex), by_numpy(x, y, contract, batch))


@pytest.mark.parametrize(("left", "right", "contract", "batch"), NUMBERS)
def test_gradients(left: Any, right: Any, contract: Any, batch: Any) -> None:
    x, y = operand(left, "float32"), operand(right, "float32")

    def loss(x: Any, y: Any) -> Any:
        return (lax.dot_general(x, y, (contract, batch)) ** 2).sum() / 2

    out = by_numpy(x, y, contract, batch)
    along = jax.grad(loss, argnums=(0, 1))(x, y)
    for place, each in enumerate(along):
        step = operand(each.shape, "float32")
        moved = by_numpy(*((step, y) if place == 0 else (x, step)), contract, batch)
        np.testing.assert_allclose(np.sum(each * step), np.sum(out * moved), rtol=1e-5, atol=1e-3)


def test_sums_in_another_dtype_and_precision() -> None:
    x, y = operand((2, 3, 4, 5), "float16"), operand((2, 6, 4, 5), "float16")
    numbers = ((3,), (3,)), ((0, 2), (0, 2))
    found = jax.jit(lambda x, y: lax.dot_general(x, y, numbers, "highest", np.float32))(x, y)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, by_numpy(x, y, *numbers))


def test_keys_are_read_as_values_are() -> None:
    """Rows of the second operand are multiplied as they are: their transposition has the dimensions of the first's."""
    x = np.ones((8, 32, 4, 16), np.float32)
    scores = jax.jit(lambda x, y: jnp.einsum("bqhd,bkhd->bhqk", x, y)).lower(x, x)
    assert scores.as_text().count("dims = [0, 2, 1, 3]") == 2
    assert "f32[8,4,16,32]" not in scores.compile().as_text()


def test_accelerators_and_several_devices_have_xlas_own_form() -> None:
    x = np.ones((8, 32, 4, 16), np.float32)
    traced = jax.jit(lambda x, y: jnp.einsum("bqhd,bkhd->bhqk", x, y)).trace(x, x)
    assert "stablehlo.transpose" not in traced.lower(lowering_platforms=("cuda",)).as_text()
    mesh = jax.make_mesh((8,), ("i",))
    split = jax.device_put(x, jax.NamedSharding(mesh, jax.P("i")))
    text = jax.jit(lambda x, y: jnp.einsum("bqhd,bkhd->bhqk", x, y)).lower(split, split).as_text()
    assert "stablehlo.transpose" not in text
