"""vmap over a batch of nothing: results have the shape of a batch of no elements, and so have gradients."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp, ops

ROWS = np.zeros((0, 5), np.float32)
PLACES = np.zeros((0,), np.int32)
WINDOW = np.arange(3, dtype=np.float32)

UPDATES: dict[str, Callable[..., Any]] = {
    **{how: lambda row, at, how=how: getattr(row.at[at], how)(2.0) for how in ("set", "add", "multiply", "min", "max")},
    "several places": lambda row, at: row.at[jnp.stack([at, at + 1])].add(1.0),
    "apply": lambda row, at: row.at[at].apply(jnp.sin),
    "update of a slice": lambda row, at: lax.dynamic_update_slice(row, jnp.ones(2), (at,)),
    "in a loop": lambda row, at: lax.while_loop(lambda row: row.sum() < 1, lambda row: row.at[at].add(1.0), row),
    "segments": lambda row, at: ops.segment_sum(row, jnp.full(5, at), 5),
}


@pytest.mark.parametrize("update", UPDATES.values(), ids=UPDATES)
def test_updates(update: Callable[..., Any]) -> None:
    found = xlamini.vmap(update)(ROWS, PLACES)
    assert found.shape == (0, 5) and found.dtype == np.float32
    assert xlamini.jit(xlamini.vmap(update))(ROWS, PLACES).shape == (0, 5)


@pytest.mark.parametrize("name", ["set", "add", "multiply", "max"])
def test_gradients_of_updates(name: str) -> None:
    def loss(row: Any, at: Any) -> Any:
        return (UPDATES[name](row, at) ** 2).sum()

    assert xlamini.vmap(xlamini.grad(loss))(ROWS, PLACES).shape == (0, 5)


def test_a_window_larger_than_the_operand_is_still_refused() -> None:
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    with pytest.raises(ValueError, match="is larger than the operand"):
        lax.scatter(jnp.zeros(0), jnp.zeros((1, 1), int), jnp.ones(1), numbers)


@pytest.mark.parametrize("axes, kernels", [((0, None), WINDOW), ((None, 0), np.zeros((0, 3), np.float32)),
                                           ((0, 0), np.zeros((0, 3), np.float32))])
def test_convolutions(axes: Any, kernels: Any) -> None:
    rows = ROWS if axes[0] == 0 else np.ones(5, np.float32)
    convolve = xlamini.vmap(jnp.convolve, axes)
    assert convolve(rows, kernels).shape == (0, 7)
    by_rows, by_kernels = xlamini.grad(lambda x, kernel: convolve(x, kernel).sum(), (0, 1))(rows, kernels)
    np.testing.assert_array_equal(by_rows, np.zeros_like(rows))
    np.testing.assert_array_equal(by_kernels, np.zeros_like(kernels))


def test_grouped_convolutions() -> None:
    def convolve(x: Any, kernel: Any) -> Any:
        return lax.conv_general_dilated(x, kernel, (1,), "SAME", feature_group_count=2)

    kernels = np.zeros((0, 6, 2, 3), np.float32)
    assert xlamini.vmap(convolve, (None, 0))(np.ones((2, 4, 7), np.float32), kernels).shape == (0, 2, 6, 7)
    assert xlamini.vmap(convolve)(np.zeros((0, 2, 4, 7), np.float32), kernels).shape == (0, 2, 6, 7)
