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


def wrong(kernel: Any = add_one, **options: Any) -> Any:
    return pl.pallas_call(kernel, jax.ShapeDtypeStruct((8,), "float32"), **options)(V)


def copies(make: Any, dtype: str = "float32") -> Any:
    def kernel(x: Any, o: Any, one: Any, many: Any) -> None:
        make(x, o, one, many).start()

    scratch = [pltpu.SemaphoreType.DMA, pltpu.SemaphoreType.DMA((2,))]
    return pl.pallas_call(kernel, jax.ShapeDtypeStruct((8,), dtype), scratch_shapes=scratch)(V)


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
    "no spec of a grid": (lambda: wrong(grid_spec=3), TypeError, "pallas_call: grid_spec must be a GridSpec, got 3"),
    "pairs of aliases": (lambda: wrong(input_output_aliases=[(0, 0)]), TypeError, "must be a mapping"),
    "an alias by name": (lambda: wrong(input_output_aliases={"x": 0}), TypeError, "must be an int, got 'x'"),
    "an alias twice": (
        lambda: pl.pallas_call(lambda x, y, o: None, V, input_output_aliases={0: 0, 1: 0})(V, V),
        ValueError, "the memory of operands 0 and 1",
    ),
    "a shape as scratch": (lambda: wrong(scratch_shapes=[(8, 128)]), TypeError, "must be buffers, got 8"),
    "a struct as scratch": (lambda: wrong(scratch_shapes=[jax.ShapeDtypeStruct((8,), "float32")]), TypeError, "VMEM"),
    "a memory as scratch": (lambda: wrong(scratch_shapes=[pltpu.VMEM]), TypeError, "scratch_shapes must be buffers"),
    "a class as scratch": (lambda: wrong(scratch_shapes=[pltpu.SemaphoreType]), TypeError, "SemaphoreType.DMA"),
    "no cost": (lambda: wrong(cost_estimate=3), TypeError, "cost_estimate must be CostEstimate"),
    "no name": (lambda: wrong(name=3), TypeError, "name must be a string, got 3"),
    "no params": (lambda: wrong(compiler_params="a"), TypeError, "compiler_params must be pallas.tpu.CompilerParams"),
    "interpret": (lambda: wrong(interpret="yes"), TypeError, r"interpret must be True, False or InterpretParams\(\)"),
    "two semantics": (
        lambda: wrong(compiler_params=pltpu.CompilerParams(("parallel", "parallel")), grid=2),
        ValueError, "dimension_semantics has 2 entries for a grid of 1 axes",
    ),
    "many scalars": (
        lambda: wrong(grid_spec=pltpu.PrefetchScalarGridSpec(3)), TypeError, "num_scalar_prefetch is 3, but the call"
    ),
    "scalars below 0": (lambda: pltpu.PrefetchScalarGridSpec(-1), ValueError, "num_scalar_prefetch must be 0 or more"),
    "elements of floats": (
        lambda: wrong(in_specs=[pl.BlockSpec((pl.Element(8.0),))]), TypeError, "block_size of Element must be an int"
    ),
    "no block": (lambda: pl.BlockSpec(8), TypeError, r"must be a tuple of sizes, got 8"),
    "no memory": (lambda: pl.BlockSpec(memory_space="foo"), ValueError, "memory_space must be one of .* got 'foo'"),
    "no pipeline": (lambda: pl.BlockSpec(pipeline_mode="x"), TypeError, r"pipeline_mode must be Buffered\(n\) or None"),
    "no buffers": (lambda: pl.Buffered(0), ValueError, "buffer_count must be 1 or more, got 0"),
    "no step": (lambda: pl.loop(0, 4, step=0), ValueError, "loop: step must not be 0"),
    "a copy of a part": (
        lambda: copies(lambda x, o, one, many: pltpu.make_async_copy(x.at[:4], o, one)),
        ValueError, r"the source is float32\[4\] but the target is float32\[8\]",
    ),
    "a copy to ints": (
        lambda: copies(lambda x, o, one, many: pltpu.make_async_copy(x, o, one), "int32"),
        TypeError, "copy between parts of the same shape and dtype",
    ),
    "a copy by two semaphores": (
        lambda: copies(lambda x, o, one, many: pltpu.make_async_copy(x, o, many)), ValueError, r"pass sem.at\[0\]"
    ),
    "a signal to two semaphores": (
        lambda: wrong(
            lambda x, o, sems: pltpu.semaphore_signal(sems), scratch_shapes=[pltpu.SemaphoreType.REGULAR((2,))]
        ),
        ValueError, "semaphore_signal: it takes one semaphore",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_arguments_are_named(name: str) -> None:
    call, error, text = WRONG[name]
    with pytest.raises(error, match=text):
        call()
