"""Arguments of kernels that do not fit are named by the error."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini as jax
import xlamini.numpy as jnp
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import tpu as pltpu

V = np.arange(8, dtype="float32")


def add_one(x: Any, o: Any) -> None:
    o[...] = x[...] + 1


def wrong_aliases(aliases: dict[int, int], dtype: str = "float32") -> Any:
    return pl.pallas_call(add_one, out_shape=jax.ShapeDtypeStruct((8,), dtype), input_output_aliases=aliases)(V)


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "no such operand": (lambda: wrong_aliases({3: 0}), IndexError, "names operand 3, but there are 1"),
    "no such result": (lambda: wrong_aliases({0: 1}), IndexError, "names result 1, but there are 1"),
    "another dtype": (lambda: wrong_aliases({0: 0}, "int32"), TypeError, "give both the same shape and dtype"),
    "no type": (lambda: pl.pallas_call(add_one, 3)(V), TypeError, "pass ShapeDtypeStruct"),
    "below 0": (lambda: pl.pallas_call(add_one, V, grid=-1), ValueError, "must be 0 or more"),
    "grid twice": (
        lambda: pl.pallas_call(add_one, V, grid=2, grid_spec=pl.GridSpec(2)), TypeError, "grid cannot be given beside"
    ),
    "a key": (lambda: pl.pallas_call(add_one, V)(jax.random.key(0)), TypeError, "pass random.key_data"),
    "a stride alone": (lambda: pltpu.roll(jnp.ones(2), 1, 0, stride=1), ValueError, "give both, or neither"),
    "half a row": (lambda: pltpu.bitcast(jnp.ones((1, 2), "int16"), "int32"), ValueError, "do not fill rows"),
    "three warps": (lambda: pl.triton.CompilerParams(num_warps=3), ValueError, "power of two"),
    "other semantics": (lambda: pltpu.CompilerParams(("some",)), ValueError, "'parallel' or 'arbitrary'"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_named(name: str) -> None:
    call, error, text = WRONG[name]
    with pytest.raises(error, match=text):
        call()
