"""Flags of XLA's effort: the options they set, and the programs that are compiled again when one changes."""

from __future__ import annotations

import threading
from contextlib import nullcontext

import jaxlib.version
import numpy as np
import pytest

import xlamini
from xlamini import numpy as jnp
from xlamini.core.flags.compile_flags import (
    compile_key,
    compiler_enable_remat_pass,
    disable_most_optimizations,
    exec_time_optimization_effort,
    memory_fitting_effort,
    memory_fitting_level,
    optimization_level,
    options_of,
)
from xlamini.runtime.execution.executable import compile_options
from xlamini.runtime.files.disk_key import Key
from xlamini.runtime.versions import BUILD_OPTIONS
from xlamini.staging.compile import compile_cache
from xlamini.staging.compile.program import with_flags

pytestmark = pytest.mark.usefixtures("optimized")

X = np.linspace(0, 1, 5, dtype=np.float32)
HAS_EFFORTS = "memory_fitting_effort" in BUILD_OPTIONS
"""jaxlib 0.12 has levels only."""


def test_defaults_add_no_options():
    assert options_of(compile_key()) == {}


def test_options_are_those_of_jax():
    # The numbers are those of `get_compile_options` of JAX 0.10.2 under these flags.
    with (
        optimization_level("O1"), memory_fitting_level("O3"), exec_time_optimization_effort(0.5),
        memory_fitting_effort(-0.5), disable_most_optimizations(True), compiler_enable_remat_pass(False),
        nullcontext() if HAS_EFFORTS else pytest.warns(UserWarning, match="this jaxlib has no option"),
    ):  # fmt: skip
        options = compile_options(xlamini.devices()[:1], options_of(compile_key()))
        on_cpu = with_flags(xlamini.jit(jnp.sin).lower(X)._program, {"xla_test_all_input_layouts": True}) or {}
    build = options.executable_build_options
    assert (build.optimization_level, build.memory_fitting_level) == (19, 39)
    if HAS_EFFORTS:
        assert (build.exec_time_optimization_effort, build.memory_fitting_effort) == (0.5, -0.5)
    assert dict(options.env_option_overrides) == {
        "xla_backend_optimization_level": 0,
        "xla_llvm_disable_expensive_passes": True,
        "xla_test_all_input_layouts": False,
        "xla_disable_hlo_passes": "rematerialization",
    }
    assert on_cpu["xla_test_all_input_layouts"] is True and on_cpu["optimization_level"] == "O1"
    assert on_cpu.get("xla_cpu_use_fusion_emitters", True) is (jaxlib.version.__version_info__ >= (0, 11))


def compiled(caplog: pytest.LogCaptureFixture, name: str) -> int:
    return sum(m.startswith(f"Compiling jit({name})") for m in caplog.messages)


def test_a_program_is_compiled_for_each_value_of_a_flag(caplog, no_cache):
    def flagged(x):
        return jnp.sin(x) * 3

    f = xlamini.jit(flagged)
    with xlamini.log_compiles():
        outs = [f(X), f(X)]
        with optimization_level("O1"):
            outs += [f(X), f(X)]
        with disable_most_optimizations():
            outs += [f(X), f(X)]
        outs.append(f(X))
    assert compiled(caplog, "flagged") == 3
    np.testing.assert_allclose(outs, [np.sin(X) * 3] * 7, rtol=1e-6)


def test_code_does_not_double_with_each_reverse(no_cache):
    """XLA's older emitters would write 2**20 sines, in half a minute."""
    def mixed(x):
        for _ in range(20):
            x = jnp.sin(x) * 1.3 + x[::-1] * 0.5
        return x

    x = expected = np.linspace(0, 1, 60, dtype=np.float32)
    for _ in range(20):
        expected = np.sin(expected) * 1.3 + expected[::-1] * 0.5
    with disable_most_optimizations():
        np.testing.assert_allclose(xlamini.jit(mixed)(x), expected, rtol=1e-4)


@pytest.mark.full
def test_eager_transformations_are_compiled_for_each_value(caplog, no_cache):
    def energy(x):
        return jnp.sum(jnp.sin(x) * x)

    with xlamini.log_compiles():
        for _ in range(3):
            xlamini.grad(energy)(X)
        before = compiled(caplog, "energy")
        with optimization_level("O2"):
            for _ in range(3):
                g = xlamini.grad(energy)(X)
    assert (before, compiled(caplog, "energy")) == (1, 2)
    np.testing.assert_allclose(g, np.sin(X) + X * np.cos(X), rtol=1e-6)


def test_a_flag_is_part_of_the_key_on_disk():
    lowered = xlamini.jit(jnp.sin).lower(X)

    def key() -> Key:
        found = compile_cache.key_of(lowered._program, options_of(compile_key()))
        assert found is not None
        return found

    with optimization_level("O1"):
        other = key()
    assert key().parts["compiler options"] == "" and other.parts["compiler options"] == "optimization_level='O1'"


def test_options_of_the_call_come_first():
    f = xlamini.jit(lambda x: x * 7, compiler_options={"exec_time_optimization_effort": 2.0})
    with (
        exec_time_optimization_effort(0.5),
        pytest.raises(ValueError, match=r"exec_time_optimization_effort must be a number from -1 to 1, got 2.0"),
    ):
        f(X)
    with pytest.raises(ValueError, match=r"optimization_level must be 'UNKNOWN', 'O0', .*, got 'O9'"):
        xlamini.jit(lambda x: x * 7, compiler_options={"optimization_level": "O9"})(X)


def test_wrong_values_of_the_flags():
    with pytest.raises(ValueError, match=r"flag optimization_level takes 'UNKNOWN' or 'O0'.*was given 'O7'"):
        xlamini.config.update("jax_optimization_level", "O7")


def test_a_thread_has_its_own_value():
    seen = []
    with optimization_level("O3"):
        thread = threading.Thread(target=lambda: seen.append(options_of(compile_key())))
        thread.start()
        thread.join()
        seen.append(options_of(compile_key()))
    assert [options.get("optimization_level") for options in seen] == [None, "O3"]
