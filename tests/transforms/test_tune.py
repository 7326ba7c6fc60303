"""`pallas.tune` without a compiler of kernels, and the model of a kernel's time."""
from __future__ import annotations

from typing import Any

import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini.experimental import pallas as pl
from xlamini.runtime.kernels.bundles import Loop, TpuCode
from xlamini.runtime.kernels.ptx import GpuCode, Registers
from xlamini.runtime.targets.topology import Target
from xlamini.staging.aot.kernel_costs import KernelCost, kernels_in
from xlamini.staging.aot.kernel_times import kernel_time
from xlamini.transforms.pallas import tune as tuning

X = xlamini.ShapeDtypeStruct((64, 128), "float32")
TPU = Target("tpu:v5e:1x1", "tpu", "TPU v5 lite", (), 2**34, 8e11, {"bfloat16": 2e14}, 1.5e9)
GPU = Target("gpu:h200", "cuda", "NVIDIA H200", (), 2**37, 4.8e12, {"float32": 6e13})


def double(rows: int) -> Any:
    if 64 % rows:
        raise ValueError(f"{rows} rows do not divide 64")

    def kernel(x: Any, y: Any, o: Any) -> None:
        o[...] = 2 * x[...] + y[...]

    block, whole = pl.BlockSpec((rows, 128), lambda i: (i, 0)), pl.BlockSpec((1, 128), lambda i: (0, 0))
    return pl.pallas_call(kernel, X, grid=64 // rows, in_specs=[block, whole], out_specs=block)


def cost(rows: int) -> KernelCost:
    jaxpr = xlamini.make_jaxpr(double(rows))(X, xlamini.ShapeDtypeStruct((1, 128), "float32")).jaxpr
    ((name, found),) = kernels_in(jaxpr)
    assert name == "kernel"
    return found


def test_a_block_that_stays_is_copied_once() -> None:
    block = 8 * 128 * 4
    assert cost(8).moved == 2 * 8 * block + 128 * 4
    assert cost(8).asked == 8 * (2 * block + 128 * 4)
    assert cost(8).arrays == 2 * 64 * 128 * 4 + 128 * 4
    assert cost(8).programs == 8


def test_kernels_inside_of_calls_are_found() -> None:
    def twice(x: Any) -> Any:
        return xlamini.jit(double(8))(double(16)(x, jnp.ones((1, 128))), jnp.ones((1, 128)))

    assert [each.programs for _, each in kernels_in(xlamini.make_jaxpr(twice)(X).jaxpr)] == [4, 8]


def test_a_tpu_computes_while_it_copies() -> None:
    code = TpuCode((Loop(0, 10, 1), Loop(1, 149, 10)), {}, 0)
    slow = kernel_time(code, KernelCost(0, 8 * 10**5, 0, 0, 8, ("float32",)), TPU)
    assert slow is not None
    assert (slow.seconds, slow.limit) == (pytest.approx(1e-6), "bundles")
    fast = kernel_time(code, KernelCost(0, 16 * 10**5, 0, 0, 8, ("float32",)), TPU)
    assert fast is not None
    assert (fast.seconds, fast.limit) == (pytest.approx(2e-6), "copies")
    assert kernel_time(code, None, TPU) == slow._replace(parts={"bundles": slow.seconds})


def test_a_gpu_waits_for_its_last_programs() -> None:
    code = GpuCode("", {}, 10, 128, 0, Registers(32, 0, 0))
    full, more = (kernel_time(code, KernelCost(6e7, 0, 0, 0, n, ("float32",)), GPU) for n in (132 * 16, 132 * 16 + 1))
    assert full is not None
    assert more is not None
    assert full.seconds == pytest.approx(1e-6)
    assert more.seconds == pytest.approx(2e-6, rel=1e-3)


def test_spills_take_time_on_a_gpu() -> None:
    given = KernelCost(0, 0, 1000, 1000, 132 * 16, ("float32",))
    with_spills = kernel_time(GpuCode("", {}, 10, 128, 0, Registers(32, 40, 40)), given, GPU)
    assert with_spills is not None
    assert with_spills.limit == "cache"
    assert kernel_time(GpuCode("", {}, 10, 128, 0, None), None, GPU) is None


def test_candidates_are_measured_where_a_device_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "_check_device", lambda: None)
    found = pl.tune(double, [8, 24, 32], X, jnp.ones((1, 128)))
    assert {trial.candidate for trial in found[:2]} == {8, 32}
    assert found.best in (8, 32)
    assert found[2].error == "ValueError: 24 rows do not divide 64"
    assert "measured" in str(found)
    assert "  24: ValueError: 24 rows do not divide 64" in str(found)


def test_no_candidate_is_the_best_of_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tuning, "_check_device", lambda: None)
    found = pl.tune(double, [24], X, X)
    with pytest.raises(ValueError, match="tune: no candidate compiles: ValueError: 24 rows"):
        _ = found.best


def test_programs_on_a_cpu_have_no_kernels() -> None:
    compiled = xlamini.jit(double(8)).lower(X, xlamini.ShapeDtypeStruct((1, 128), "float32")).compile()
    assert compiled.kernels() == []
    assert compiled.kernels() is compiled.kernels()


def test_a_loaded_program_has_no_modules() -> None:
    loaded = xlamini.load(xlamini.jit(jnp.sin).lower(1.0).compile().serialize())
    with pytest.raises(ValueError, match="kernels: the program was loaded from a file"):
        loaded.kernels()


def test_a_machine_without_a_device_needs_a_target() -> None:
    with pytest.raises(ValueError, match="tune: neither a TPU nor a GPU is here; name one"):
        pl.tune(double, [8], X, X)
