"""Memory plans for accelerators: a row for each program and target, and the largest batch that fits.

`python -m tests.support.memory_programs` prints the rows.
"""
from __future__ import annotations

from typing import Any

import pytest

import xlamini
import xlamini.numpy as jnp
from tests.support.memory_programs import LAYERS, PROGRAMS, Program, array, compared, transformer_loss
from xlamini.runtime.targets.topology import Target

MIB = 2**20
SHAPES = (
    [(), (3,), (200,), (300,), (1000,), (1100,), (5000,), (1, 1), (2, 3), (3, 5), (5, 130), (130, 9), (17, 256)]
    + [(1, 1000), (1000, 1), (7, 1000), (1000, 7), (3, 3, 3, 32), (1000, 10), (64, 32, 32, 3), (64, 3, 100)]
    + [(8, 12, 100, 64), (2, 1000, 1000), (1000, 2, 1000), (100, 100, 100), (50, 33, 77), (12, 64, 64)]
)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=list(PROGRAMS))
def test_peaks_are_those_of_the_compiler(program: Program, target: Target) -> None:
    planned, compiled = compared(program, target)
    assert planned == pytest.approx(compiled, rel=0.25)


@pytest.mark.parametrize("dtype", ("float32", "bfloat16", "int8", "bool", "int32", "float16"))
def test_the_size_of_an_argument_is_the_compilers(dtype: str, target: Target) -> None:
    traced = xlamini.jit(lambda xs: [x == x for x in xs]).trace([array(*shape, dtype=dtype) for shape in SHAPES])
    stats = traced.lower(target=target).compile().memory_analysis()
    assert traced.memory_plan(target=target).arguments == pytest.approx(stats.argument_size_in_bytes, rel=0.001)


@pytest.mark.slow
def test_the_precision_of_a_product_decides_what_a_tpu_stores(tpu: Target) -> None:
    x, w = array(8192, 8192), array(8192, 8192)
    for precision, size in (("default", 128), ("highest", 256)):
        fun = lambda w, x, p=precision: jnp.dot(jnp.tanh(jnp.dot(x, w, precision=p)), w, precision=p)
        traced = xlamini.jit(fun).trace(w, x)
        stats = traced.lower(target=tpu).compile().memory_analysis()
        assert traced.memory_plan(target=tpu).temporaries == size * MIB
        assert stats.temp_size_in_bytes == pytest.approx(size * MIB, rel=0.01)


def test_recomputation_saves(target: Target) -> None:
    kept, saved = (xlamini.jit(PROGRAMS[name].fun) for name in ("transformer", "transformer with remat"))
    args = PROGRAMS["transformer"].args
    assert saved.trace(*args).memory_plan(target=target).peak < 0.7 * kept.trace(*args).memory_plan(target=target).peak


def test_a_value_on_the_chip_is_not_counted(tpu: Target) -> None:
    def plan(n: int) -> Any:
        x = array(n, n)
        fun = lambda x: jnp.tanh(x @ x) @ x
        return xlamini.jit(fun).trace(x).memory_plan(target=tpu)

    small, large = plan(1024), plan(16384)
    assert (small.temporaries, small.on_chip) == (0, 2 * MIB)
    assert (large.temporaries, large.on_chip) == (512 * MIB, 0)
    assert "Of these 2 MiB are in memory on the chip, which is not counted." in repr(small)
    assert [value.type for value in small.held] == ["bf16[1024,1024]"]


def loss_of(batch: int) -> Any:
    return xlamini.grad(transformer_loss), (LAYERS, array(batch, 512, 512), array(batch, 512, 512))


def test_the_largest_batch_of_a_target(target: Target) -> None:
    fun, args = loss_of(8)
    jitted = xlamini.jit(fun)
    largest = jitted.memory_plan(*args).largest(batch=8, target=target)
    peak = lambda n: jitted.trace(*loss_of(n)[1]).memory_plan(target=target).peak
    assert peak(largest) <= target.memory < peak(largest + 1)


@pytest.mark.slow
def test_the_largest_batch_compiles(target: Target) -> None:
    """Where memory is short the compilers recompute values on their own, so that the plan is compared at half of it."""
    fun, args = loss_of(8)
    jitted = xlamini.jit(fun)
    largest = jitted.memory_plan(*args).largest(batch=8, target=target)
    whole, half = (Program(fun, loss_of(n)[1]) for n in (largest, largest // 2))
    assert compared(whole, target)[1] < target.memory
    planned, compiled = compared(half, target)
    assert planned == pytest.approx(compiled, rel=0.25)
    assert planned == pytest.approx(target.memory / 2, rel=0.1)


def test_the_padding_of_small_batches_hides_no_argument(tpu: Target) -> None:
    plan = xlamini.jit(lambda x: x * 2.0).memory_plan(array(8))
    assert plan.largest(batch=8, target=tpu) == tpu.memory // 8


def test_what_largest_says_of_a_target(target: Target) -> None:
    plan = xlamini.jit(lambda w, x: x @ w).memory_plan(array(2**17, 2**17), array(8, 2**17))
    with pytest.raises(ValueError, match=r"largest: not even a size of 1 fits into 16 GiB; it needs 64 GiB"):
        plan.largest(batch=8, target=target, limit=16 * 2**30)
    with pytest.raises(ValueError, match="no argument has a leading dimension batch=7"):
        plan.largest(batch=7, target=target)
