"""Programs compiled for targets: what can be read of them, what of `jit` works with them, and what they refuse."""
from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from docs.builder.sessions import Checker
from tests.aot.conftest import target_or_skip
from tests.support.paths import ROOT
from xlamini import config, debug, lax, random
from xlamini.errors import DeviceNotHereError, JaxRuntimeError
from xlamini.runtime.targets.topology import Target
from xlamini.sharding import Mesh, NamedSharding, PartitionSpec

X = np.ones((128, 128), np.float32)


def compiled(fun: Any, target: Target, *args: Any, **options: Any) -> Any:
    return xlamini.jit(fun, **options).lower(*args).compile(target=target)


def step(x: Any) -> Any:
    return jnp.tanh(x @ x)


@pytest.mark.parametrize(
    ("spec", "count", "kind"),
    [
        ("tpu:v4:2x2x1", 4, "TPU v4"),
        ("tpu:v5e:1x1", 1, "TPU v5 lite"),
        ("tpu:v5e:16x16", 256, "TPU v5 lite"),
        ("tpu:v5p:2x2x1", 4, "TPU v5"),
        ("tpu:v5p:4x8x8", 256, "TPU v5"),
        ("tpu:v6e:2x4", 8, "TPU v6 lite"),
        ("TPU:V6E:16x16", 256, "TPU v6 lite"),
        ("gpu:h200", 1, "NVIDIA H200"),
        ("gpu:h100:8", 8, "NVIDIA H100 80GB HBM3"),
        ("gpu:a100:256", 256, "NVIDIA A100-SXM4-80GB"),
        ("cuda:t4", 1, "Tesla T4"),
    ],
)
def test_targets(spec: str, count: int, kind: str) -> None:
    target = target_or_skip(spec)
    assert (len(target.devices), target.device_kind) == (count, kind)
    assert {d.device_kind for d in target.devices} == {kind}
    assert sorted(d.id for d in target.devices) == list(range(count))
    assert target is xlamini.target(spec)
    assert target.memory > 10**10 and target.bandwidth > 10**11 and min(target.peaks.values()) > 10**11


@pytest.mark.parametrize("name", ("a100", "a100_40gb", "b200", "h100", "l4", "l40s", "rtx4090", "t4"))
def test_every_gpu_compiles(name: str) -> None:
    assert "HloModule" in compiled(step, target_or_skip(f"gpu:{name}"), X).as_text()


@pytest.mark.parametrize("spec", ("tpu:v4:2x2x1", "tpu:v5p:2x2x1", "tpu:v6e:2x2"))
def test_every_tpu_compiles(spec: str) -> None:
    found = compiled(step, target_or_skip(spec), X)
    assert found.cost_analysis()["flops"] >= 2 * 128**3
    assert 1e-8 < found.prediction().seconds < 1e-3


def test_what_is_known_of_a_program(target: Target) -> None:
    found = compiled(step, target, X)
    assert "dot_general#e0" in found.as_text()
    assert "f32[128,128]" in found.as_text()
    assert found.memory_analysis().argument_size_in_bytes == X.nbytes
    cost = found.cost_analysis()
    assert cost.source == "xla"
    assert 2 * 128**3 <= cost["flops"] < 1.2 * 2 * 128**3
    assert 2 * 128**3 < found.cost_analysis("xlamini")["flops"] < 1.1 * 2 * 128**3
    assert found.out_info.sharding.device_set == {target.devices[0]}
    assert found.runtime_executable().serialize()


def test_a_call_says_that_the_device_is_not_here(target: Target) -> None:
    found = compiled(step, target, X)
    with pytest.raises(DeviceNotHereError, match=rf"step was compiled for {target.name} .*serialize\(\).*xlamini.load"):
        found(X)
    with pytest.raises(TypeError, match="x: compiled for f32"):
        found(X[0])


def test_the_time_of_a_tpu_program_is_xlas_estimate(tpu: Target) -> None:
    once = compiled(step, tpu, X).prediction()
    looped = compiled(lambda x: lax.fori_loop(0, 1000, lambda i, y: step(y), x), tpu, X).prediction()
    assert once.source.startswith("XLA's estimate of ")
    assert 100 < looped.seconds / once.seconds < 1000


def test_the_time_of_a_gpu_program_is_a_bound_of_ours(gpu: Target) -> None:
    found = compiled(lambda x: lax.fori_loop(0, 1000, lambda i, y: y @ x, x), gpu, X).prediction()
    assert found.source.startswith("xlamini's bound from the peaks of a NVIDIA H200")
    assert found.seconds == pytest.approx(1000 * 2 * 128**3 / gpu.peaks["float32"], rel=0.01)


@pytest.mark.parametrize(
    ("dtype", "result"), [("bfloat16", "float32"), ("int8", "int32"), ("float8_e4m3fn", "float32")]
)
def test_the_peak_is_that_of_the_operands(gpu: Target, dtype: str, result: str) -> None:
    x = xlamini.ShapeDtypeStruct((2048, 2048), dtype)
    found = compiled(lambda x: lax.dot(x, x, preferred_element_type=result), gpu, x).prediction()
    assert found.seconds == pytest.approx(2 * 2048**3 / gpu.peaks[dtype], rel=0.01)


def test_loops_that_do_not_count_from_zero_by_one(tpu: Target) -> None:
    def looped(start: int, by: int) -> Any:
        return lambda x: lax.while_loop(lambda s: s[0] < 1000, lambda s: (s[0] + by, step(s[1])), (start, x))[1]

    ten = compiled(lambda x: lax.fori_loop(0, 10, lambda i, y: step(y), x), tpu, X).prediction().seconds
    assert compiled(looped(990, 1), tpu, X).prediction().seconds == pytest.approx(ten, rel=0.2)
    assert compiled(looped(0, 100), tpu, X).prediction().seconds == pytest.approx(ten, rel=0.2)


def test_lowering_for_a_target(target: Target) -> None:
    lowered = xlamini.jit(step).trace(X).lower(target=target)
    assert lowered.compile().cost_analysis()["flops"] >= 2 * 128**3
    assert lowered.cost_analysis()["flops"] >= 2 * 128**3
    with pytest.raises(DeviceNotHereError):
        lowered.compile()(X)


def test_one_lowering_compiles_here_and_for_targets(target: Target) -> None:
    lowered = xlamini.jit(step).lower(X)
    lowered.compile(target=target)
    np.testing.assert_allclose(lowered.compile()(X), np.tanh(X @ X))


def test_compiler_options_reach_the_target(target: Target) -> None:
    with pytest.raises(JaxRuntimeError, match="No such compile option: 'foo'"):
        xlamini.jit(step).lower(X).compile({"foo": 1}, target=target)


def test_donated_static_and_captured(target: Target) -> None:
    table = jnp.asarray(X)
    found = compiled(lambda x, n: x * n + table, target, X, 3, donate_argnums=0, static_argnums=1)
    assert found.memory_analysis().alias_size_in_bytes == X.nbytes
    assert found.memory_analysis().argument_size_in_bytes == 2 * X.nbytes


def test_double_precision(target: Target) -> None:
    with xlamini.enable_x64(True):
        assert compiled(step, target, X.astype(np.float64)).out_info.dtype == np.float64


@pytest.mark.parametrize("kind", ("threefry2x32", "rbg", "unsafe_rbg"))
def test_random_keys(kind: str, target: Target) -> None:
    found = compiled(lambda k: random.split(random.fold_in(k, 1))[0], target, random.key(0, impl=kind))
    assert "u32[" in found.as_text()


def test_solvers_of_a_gpu(gpu: Target) -> None:
    def solved(x):
        return jnp.linalg.qr(x), jnp.linalg.eigh(x), jnp.linalg.svd(x), jnp.linalg.eig(x), jnp.linalg.inv(x)

    assert "cusolver" in compiled(solved, gpu, X).as_text()


def test_python_functions_are_refused(target: Target) -> None:
    def printing(x):
        debug.print("{}", x)
        return x

    with pytest.raises((NotImplementedError, RuntimeError), match=r"Python functions"):
        compiled(printing, target, X)


def test_outputs_without_memory(target: Target) -> None:
    found = compiled(lambda x: ((), jnp.zeros((0, 3)), xlamini.grad(lambda i: 1.0 * i, allow_int=True)(3)), target, X)
    assert found.memory_analysis().argument_size_in_bytes == 0


def test_a_program_that_does_not_fit(tpu: Target) -> None:
    def large(x):
        return jnp.cumsum(jnp.ones((1 << 18, 1 << 15), np.float32) * x[0, 0], axis=0)

    with pytest.raises(JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        compiled(large, tpu, X)


@pytest.mark.parametrize("spec", ("tpu:v5e:16x16", "tpu:v5p:4x8x8", "gpu:h200:256"))
def test_a_program_on_a_mesh_of_256_devices(spec: str) -> None:
    mesh = Mesh(np.array(target_or_skip(spec).devices).reshape(16, 16), ("x", "y"))
    places = NamedSharding(mesh, PartitionSpec("x", "y")), NamedSharding(mesh, PartitionSpec("y"))
    x = np.ones((1024, 1024), np.float32)
    found = xlamini.jit(lambda a, b: jnp.sum(a @ b), in_shardings=places).lower(x, x).compile()
    assert "all-reduce" in found.as_text()
    assert found.memory_analysis().argument_size_in_bytes <= x.nbytes / 16 + x.nbytes / 128
    with pytest.raises(DeviceNotHereError, match="lambda"):
        found(x, x)


def test_a_mesh_and_a_target(tpu: Target, gpu: Target) -> None:
    mesh = Mesh(np.array(tpu.devices).reshape(2, 2), ("x", "y"))
    jitted = xlamini.jit(lambda a: a @ a, in_shardings=NamedSharding(mesh, PartitionSpec("x")))
    lowered = jitted.lower(X)
    assert lowered.compile(target=tpu).input_shardings[0][0].mesh == mesh
    assert jitted.trace(X).lower(target=tpu).compile().input_shardings[0][0].mesh == mesh
    with pytest.raises(ValueError, match=r"make the mesh of target\.devices"):
        lowered.compile(target=gpu)


def test_a_target_holds_no_arrays(target: Target) -> None:
    device = target.devices[0]
    for value in (X, 3, jnp.asarray(X), [1.0]):
        with pytest.raises(DeviceNotHereError, match=f"a {target.device_kind} of a target holds no arrays"):
            xlamini.device_put(value, device)
    with pytest.raises(DeviceNotHereError, match="step was compiled for"):
        xlamini.jit(step, device=target.devices[0])(X)


def test_nothing_of_a_target_is_kept_on_disk(target: Target, tmp_path: Path) -> None:
    config.update("jax_compilation_cache_dir", str(tmp_path))
    try:
        compiled(lambda x: step(x) + 1, target, X)
    finally:
        config.update("jax_compilation_cache_dir", None)
    assert list(tmp_path.rglob("*")) == []


def test_several_processes_compile_at_once(tpu: Target) -> None:
    program = f"import xlamini; print(xlamini.target({tpu.name!r}))"
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    found = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert found.stdout.strip() == repr(tpu), found.stderr


class _WithoutNumbers(Checker):
    """Numbers are those of one version of the compilers."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(_NUMBER.sub("#", want), _NUMBER.sub("#", got), optionflags)


_NUMBER = re.compile(r"\b\d[\d.]*(e[+-]\d+)?")


@pytest.mark.parametrize("name", ["targets.md", "tutorials/memory.md"])
def test_a_page_about_targets(name: str, tpu: Target, gpu: Target) -> None:
    """The page prints what it says; elsewhere its examples are skipped, as they need compilers."""
    text = (ROOT / "docs" / name).read_text().replace("  # doctest: +SKIP", "").replace("```", "")
    page = doctest.DocTestParser().get_doctest(text, {}, name, name, 0)
    runner = doctest.DocTestRunner(_WithoutNumbers(), optionflags=doctest.ELLIPSIS)
    runner.run(page)
    assert runner.summarize().failed == 0
