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
X = array(8192, 8192)
SHAPES = (
    [(), (3,), (200,), (300,), (1000,), (1100,), (5000,), (1, 1), (2, 3), (3, 5), (5, 130), (130, 9), (17, 256)]
    + [(1, 1000), (1000, 1), (7, 1000), (1000, 7), (3, 3, 3, 32), (1000, 10), (64, 32, 32, 3), (64, 3, 100)]
    + [(8, 12, 100, 64), (2, 1000, 1000), (1000, 2, 1000), (100, 100, 100), (50, 33, 77), (12, 64, 64)]
)


@pytest.mark.slow
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=list(PROGRAMS))
def test_peaks_are_those_of_the_compiler(program: Program, gpu: Target) -> None:
    planned, compiled = compared(program, gpu)
    assert planned == pytest.approx(compiled, rel=0.25)


@pytest.mark.parametrize("dtype", ("float32", "bfloat16", "int8", "bool", "int32", "float16"))
def test_the_size_of_an_argument_is_the_compilers(dtype: str, gpu: Target) -> None:
    traced = xlamini.jit(lambda xs: [x == x for x in xs]).trace([array(*shape, dtype=dtype) for shape in SHAPES])
    stats = traced.lower(target=gpu).compile().memory_analysis()
    assert traced.memory_plan(target=gpu).arguments == pytest.approx(stats.argument_size_in_bytes, rel=0.001)


def test_the_bytes_of_a_tpu_are_its_compilers(tpu: Target) -> None:
    """Those of every stage: the product's result is rounded to bfloat16, and results are padded to tiles."""
    traced = xlamini.jit(lambda w, x: (jnp.dot(jnp.tanh(x @ w), w), x[:, :1]), donate_argnums=1).trace(X, X)
    lowered = traced.lower(target=tpu)
    compiled = lowered.compile()
    for plan in (traced.memory_plan(target=tpu), lowered.memory_plan(target=tpu)):
        assert (plan.arguments, plan.donated, plan.temporaries) == (2 * 256 * MIB, 256 * MIB, 128 * MIB)
        assert plan.results > 256 * MIB and plan.left_out[-1].startswith("the bytes are those of the compiler")
    with pytest.raises(TypeError, match="memory_plan: a TPU's compiler is asked, so call it on jit"):
        compiled.memory_plan(target=tpu)


def test_recomputation_saves(gpu: Target) -> None:
    kept, saved = (xlamini.jit(PROGRAMS[name].fun) for name in ("transformer", "transformer with remat"))
    args = PROGRAMS["transformer"].args
    assert saved.trace(*args).memory_plan(target=gpu).peak < 0.7 * kept.trace(*args).memory_plan(target=gpu).peak


def test_a_value_on_the_chip_is_not_counted(tpu: Target) -> None:
    def plan(n: int) -> Any:
        x = array(n, n)
        fun = lambda x: jnp.tanh(x @ x) @ x
        return xlamini.jit(fun).trace(x).memory_plan(target=tpu)

    small, large = plan(1024), plan(16384)
    assert (small.temporaries, small.on_chip) == (0, 4 * MIB)
    assert (large.temporaries, large.on_chip) == (512 * MIB, 512 * MIB)
    assert "Of these 4 MiB are on the chip, as bfloat16 or fused, which is not counted." in repr(small)
    assert [value.type for value in small.held] == ["f32[1024,1024]"]


def loss_of(batch: int) -> Any:
    return xlamini.grad(transformer_loss), (LAYERS, array(batch, 512, 512), array(batch, 512, 512))


def test_the_largest_batch_of_a_target(gpu: Target) -> None:
    fun, args = loss_of(8)
    jitted = xlamini.jit(fun)
    largest = jitted.memory_plan(*args).largest(batch=8, target=gpu)
    peak = lambda n: jitted.trace(*loss_of(n)[1]).memory_plan(target=gpu).peak
    assert peak(largest) <= gpu.memory < peak(largest + 1)


@pytest.mark.slow
def test_the_largest_batch_of_a_tpu_asks_its_compiler_a_few_times(tpu: Target) -> None:
    sizes = []

    def fun(w: Any, x: Any) -> Any:
        sizes.append(x.shape[0])
        return (jnp.tanh(x @ w) @ w).sum()

    w, x = array(512, 512), array(8, 512)
    largest = xlamini.jit(fun).memory_plan(w, x).largest(batch=8, target=tpu, limit=2**22)
    peak = lambda n: xlamini.jit(fun).trace(w, array(n, 512)).memory_plan(target=tpu).peak
    assert peak(largest) <= 2**22 < peak(largest + 1)
    assert len(sizes) < 24


@pytest.mark.slow
def test_the_largest_batch_compiles(gpu: Target) -> None:
    """Where memory is short the compilers recompute values on their own, so that the plan is compared at half of it."""
    fun, args = loss_of(8)
    jitted = xlamini.jit(fun)
    largest = jitted.memory_plan(*args).largest(batch=8, target=gpu)
    whole, half = (Program(fun, loss_of(n)[1]) for n in (largest, largest // 2))
    assert compared(whole, gpu)[1] < gpu.memory
    planned, compiled = compared(half, gpu)
    assert planned == pytest.approx(compiled, rel=0.25)
    assert planned == pytest.approx(gpu.memory / 2, rel=0.1)


def test_the_largest_batch_is_one_that_the_compiler_takes(tpu: Target) -> None:
    """It keeps some of a TPU's memory, 15.75 of 16 GiB, so that its refusal ends the search and not the limit."""
    plan = xlamini.jit(lambda x: x * 2.0).memory_plan(array(8))
    assert 0.95 * tpu.memory < 8 * plan.largest(batch=8, target=tpu) < tpu.memory


def test_what_largest_says_of_a_target(target: Target) -> None:
    plan = xlamini.jit(lambda w, x: x @ w).memory_plan(array(2**17, 2**17), array(8, 2**17))
    needs = "64 GiB" if target.platform != "tpu" else "more than the compiler can place"
    with pytest.raises(ValueError, match=rf"largest: not even a size of 1 fits into 16 GiB; it needs {needs}"):
        plan.largest(batch=8, target=target, limit=16 * 2**30)
    with pytest.raises(ValueError, match="no argument has a leading dimension batch=7"):
        plan.largest(batch=7, target=target)
