"""JAX's flags and environment variables: each is honoured, accepted, or warned of once by name."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import xlamini
from tests.support.paths import ROOT
from xlamini.core.flags.config import config, flags
from xlamini.core.flags.environment_variables import ignored
from xlamini.core.flags.jax_flags import NO_EFFECT, NO_MEANING, AcceptedFlag, warn_of_environment

# All of `jax.config.values` in JAX 0.10.2.
NAMES = """
check_vma eager_constant_folding jax2tf_associative_scan_reductions jax2tf_default_native_serialization
jax_allow_f16_reductions jax_array_garbage_collection_guard jax_auto_pcast jax_backend_target
jax_bcoo_cusparse_lowering jax_captured_constants_report_frames jax_captured_constants_warn_bytes
jax_check_proxy_envs jax_check_static_indices jax_check_tracer_leaks jax_compilation_cache_check_contents
jax_compilation_cache_dir jax_compilation_cache_expect_pgle jax_compilation_cache_include_metadata_in_key
jax_compilation_cache_max_size jax_compiler_detailed_logging_min_ops jax_compiler_enable_remat_pass
jax_cpu_collectives_implementation jax_cpu_enable_async_dispatch jax_cpu_get_global_topology_timeout_minutes
jax_cpu_get_local_topology_timeout_minutes jax_cross_host_transfer_socket_address
jax_cross_host_transfer_timeout_seconds jax_cross_host_transfer_transfer_size jax_cross_host_transport_addresses
jax_cuda_visible_devices jax_custom_vjp3 jax_debug_infs jax_debug_key_reuse
jax_debug_leaked_clients_on_clear_backends jax_debug_log_modules jax_debug_nans jax_default_device
jax_default_matmul_precision jax_default_prng_impl jax_disable_bwd_checks jax_disable_jit
jax_disable_most_optimizations jax_disable_vmap_shmap_error jax_disallow_mesh_context_manager jax_distributed_debug
jax_dump_ir_modes jax_dump_ir_to jax_embedded_constants_max_bytes jax_enable_checks jax_enable_compilation_cache
jax_enable_custom_prng jax_enable_pgle jax_enable_preemption_service jax_enable_recoverability jax_enable_x64
jax_error_checking_behavior_divide jax_error_checking_behavior_nan jax_error_checking_behavior_oob
jax_exec_time_optimization_effort jax_experimental_unsafe_xla_runtime_errors jax_explain_cache_misses
jax_explicit_x64_dtypes jax_export_calling_convention_version jax_export_ignore_forward_compatibility
jax_force_dcn_cross_host_transfers jax_high_dynamic_range_gumbel jax_hlo_source_file_canonicalization_regex
jax_include_debug_info_in_dumps jax_include_full_tracebacks_in_locations jax_legacy_prng_key
jax_log_checkpoint_residuals jax_log_compiles jax_logging_level jax_memory_fitting_effort jax_memory_fitting_level
jax_mock_gpu_topology jax_mosaic_allow_hlo jax_mutable_array_checks jax_no_execution jax_no_tracing
jax_num_cpu_devices jax_numpy_dtype_promotion jax_numpy_rank_promotion jax_oneapi_visible_devices
jax_optimization_level jax_pallas_enable_debug_checks jax_pallas_poison_buffers jax_pallas_use_mosaic_gpu
jax_pallas_verbose_errors jax_persistent_cache_enable_xla_caches jax_persistent_cache_min_compile_time_secs
jax_persistent_cache_min_entry_size_bytes jax_pgle_aggregation_percentile jax_pgle_profiling_runs
jax_pjrt_client_create_options jax_platform_name jax_platforms jax_pprint_use_color
jax_ragged_dot_use_gpu_pallas_triton_lowering jax_ragged_dot_use_ragged_dot_instruction
jax_raise_persistent_cache_errors jax_random_seed_offset jax_refs_to_pins jax_remat3
jax_remove_custom_partitioning_ptr_from_cache_key jax_remove_size_one_mesh_axis_from_type jax_rocm_visible_devices
jax_scan3 jax_send_traceback_to_runtime jax_serialization_version jax_share_binary_between_hosts
jax_share_binary_between_hosts_timeout_ms jax_softmax_custom_jvp jax_sort_devices_by_process_index
jax_source_url_schema jax_thread_guard jax_threefry_gpu_kernel_lowering jax_threefry_partitionable
jax_traceback_filtering jax_traceback_in_locations_limit jax_tracer_error_num_traceback_frames jax_transfer_guard
jax_transfer_guard_device_to_device jax_transfer_guard_device_to_host jax_transfer_guard_host_to_device
jax_use_direct_linearize jax_use_emit_pipeline_primitive jax_use_magma jax_use_shardy_partitioner
jax_use_simplified_jaxpr_constants jax_xla_backend jax_xla_profile_version mock_num_gpu_processes
""".split()

CONTEXTS = """
allow_f16_reductions array_garbage_collection_guard auto_pcast check_tracer_leaks checking_leaks debug_infs
debug_key_reuse debug_nans default_device default_matmul_precision default_prng_impl disable_jit enable_checks
enable_custom_prng enable_x64 explain_cache_misses jax2tf_associative_scan_reductions log_compiles no_execution
no_tracing numpy_dtype_promotion numpy_rank_promotion remove_size_one_mesh_axis_from_type softmax_custom_jvp
thread_guard threefry_partitionable transfer_guard transfer_guard_device_to_device transfer_guard_device_to_host
transfer_guard_host_to_device""".split()


@pytest.fixture(autouse=True)
def restored():
    before = {name: (flag.get_global(), vars(flag).get("warns")) for name, flag in flags.items()}
    yield
    for name, (value, warns) in before.items():
        flags[name].set_global(value)
        if warns is not None:
            flags[name].warns = warns


@pytest.mark.parametrize("name", NAMES)
def test_every_flag_of_jax_is_read_and_set_to_its_value(name):
    config.update(name, getattr(config, name))
    assert config.read(name) == getattr(config, name)


@pytest.mark.parametrize("name", sorted(NO_EFFECT))
def test_what_has_no_effect_warns_once(name):
    flag = flags[name]
    if not isinstance(flag, AcceptedFlag):
        return
    other = {bool: not flag.default, int: 7, float: 0.5, str: "other"}.get(type(flag.default), "text")
    with pytest.warns(UserWarning, match=f"flag jax_{name} is accepted but has no effect in xlamini: ") as caught:
        config.update(f"jax_{name}", other)
    assert caught[0].filename == __file__
    config.update(name, flag.default)
    config.update(name, other)
    assert config.read(name) == other


def test_what_has_no_meaning_is_silent():
    config.update("jax_use_shardy_partitioner", False)
    config.update("jax_softmax_custom_jvp", True)
    assert (config.jax_use_shardy_partitioner, config.jax_softmax_custom_jvp) == (False, True)
    assert not NO_MEANING.keys() & NO_EFFECT.keys()


@pytest.mark.parametrize("name", CONTEXTS)
def test_contexts_of_the_root(name):
    context = getattr(xlamini, name)
    if name == "checking_leaks":
        assert context is not None
        return
    value = context.value
    with warnings.catch_warnings(), context(value):
        assert config.read(name) == value


def test_checking_leaks_sets_its_flag():
    with xlamini.checking_leaks():
        assert config.check_tracer_leaks
    assert not config.check_tracer_leaks


def test_wrong_values_and_names():
    with pytest.raises(TypeError, match="flag debug_nans takes a value of type bool"):
        config.update("jax_debug_nans", "yes")
    with pytest.raises(TypeError, match=r"the name of a flag is a text, but was given 3 of type int"):
        config.update(3, 4)
    with pytest.raises(AttributeError, match="there is no flag 'jax_debug_nan'; did you mean debug_nans"):
        config.update("jax_debug_nan", True)


def test_platform_name_is_platforms():
    config.update("jax_platform_name", "cpu")
    assert config.platforms == config.jax_platform_name == "cpu"


def test_repr_lists_what_is_set():
    before = repr(config)
    config.update("jax_enable_x64", True)
    assert "enable_x64=True" in repr(config) and "enable_x64" not in before


def test_disable_jit_takes_its_argument_by_name():
    with xlamini.disable_jit(disable=False):
        assert not config.disable_jit
    with xlamini.disable_jit(disable=True):
        assert config.disable_jit


def test_the_command_line(monkeypatch):
    monkeypatch.setattr(sys, "argv", ["script.py", "--jax_enable_x64", "--steps=3", "--jax_numpy_rank_promotion=warn"])
    config.parse_flags_with_absl()
    assert (config.enable_x64, config.numpy_rank_promotion) == (True, "warn")


def test_compilations_are_logged(caplog, no_cache):
    f = xlamini.jit(lambda x: x * 3 - 1, compiler_options={"xla_cpu_enable_fast_math": False})
    with xlamini.log_compiles():
        f(np.ones((2, 3), np.float32))
        f(np.ones((2, 3), np.float32))
    f(np.ones(4, np.float32))
    traced, lowered, first, second = [m for m in caplog.messages if "<lambda>" in m]
    assert traced.startswith("Finished tracing <lambda> for jit in ")
    assert lowered.startswith("Finished jaxpr to MLIR module conversion jit(<lambda>) in ")
    assert first == "Compiling jit(<lambda>) with global shapes and types [f32[2,3]]"
    assert second.startswith("Finished XLA compilation of jit(<lambda>) in ")


def test_custom_prng_gives_typed_keys():
    assert xlamini.random.PRNGKey(0).shape == (2,)
    with xlamini.enable_custom_prng(True):
        assert xlamini.random.PRNGKey(0).shape == ()


def run(code: str, **environment: str) -> subprocess.CompletedProcess:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("XLAMINI_", "JAX_"))}
    return subprocess.run(
        [sys.executable, "-c", f"import xlamini; from xlamini import config; {code}"],
        env={**clean, "PYTHONPATH": str(ROOT), **environment}, capture_output=True, text=True,
    )  # fmt: skip


@pytest.mark.full
def test_variables_of_jax_are_read():
    result = run(
        "print(config.enable_x64, config.platforms, config.disable_jit, config.default_matmul_precision, "
        "config.compilation_cache_dir, xlamini.device_count())",
        JAX_ENABLE_X64="1", JAX_PLATFORMS="cpu", JAX_DISABLE_JIT="true", JAX_DEFAULT_MATMUL_PRECISION="high",
        JAX_COMPILATION_CACHE_DIR="some", JAX_NUM_CPU_DEVICES="3",
    )  # fmt: skip
    assert result.stdout.split() == ["True", "cpu", "True", "high", "some", "3"], result.stderr


@pytest.mark.full
def test_variables_of_flags_that_act():
    code = "import numpy as np; xlamini.jit(lambda x: x)(np.ones(2)); print(xlamini.random.PRNGKey(1))"
    result = run(code, JAX_RANDOM_SEED_OFFSET="4", JAX_EXPLAIN_CACHE_MISSES="1", JAX_LOGGING_LEVEL="INFO")
    assert result.stdout.strip() == "[0 5]" and "TRACING CACHE MISS at <string>:1" in result.stderr, result.stderr


@pytest.mark.full
def test_own_variables_come_before_those_of_jax():
    result = run(
        "print(config.numpy_rank_promotion, config.platforms)",
        JAX_NUMPY_RANK_PROMOTION="warn", XLAMINI_NUMPY_RANK_PROMOTION="raise", JAX_PLATFORM_NAME="cpu",
    )  # fmt: skip
    assert result.stdout.split() == ["raise", "cpu"], result.stderr


@pytest.mark.full
def test_variables_without_effect_are_named():
    result = run("print(config.enable_pgle)", JAX_ENABLE_PGLE="1", JAX_FOO="2", JAX_LOCAL_DEVICE_IDS="0")
    assert result.stdout == "True\n"
    assert "flag jax_enable_pgle is accepted but has no effect" in result.stderr
    assert "environment variable JAX_FOO is ignored" in result.stderr and "LOCAL" not in result.stderr


@pytest.mark.full
def test_xla_flags_give_the_number_of_cpu_devices():
    code = "import os; os.environ['XLA_FLAGS'] = '--xla_force_host_platform_device_count=5'; "
    assert run(f"{code}print(xlamini.device_count())").stdout == "5\n"


def test_names_of_the_environment_are_checked(monkeypatch):
    monkeypatch.setenv("JAX_ENABLE_X46", "1")
    with pytest.warns(UserWarning, match="variable JAX_ENABLE_X46 is ignored.*did you mean JAX_ENABLE_X64"):
        warn_of_environment()
    ignored.pop()


# --- transfer guards


def test_disallow_stops_implicit_transfers_only():
    f = xlamini.jit(lambda x: x + 1)
    x = np.ones(3, np.float32)
    f(x)
    with xlamini.transfer_guard("disallow"):
        y = xlamini.device_put(x)
        assert xlamini.device_get(f(y)).tolist() == [2, 2, 2]
        with pytest.raises(xlamini.errors.JaxRuntimeError, match="Disallowed host-to-device transfer"):
            f(x)
        with xlamini.transfer_guard_host_to_device("allow"):
            f(x)
    f(x)


def test_disallow_explicit_stops_device_put():
    with (
        xlamini.transfer_guard_host_to_device("disallow_explicit"),
        pytest.raises(xlamini.errors.JaxRuntimeError, match="Disallowed host-to-device transfer"),
    ):
        xlamini.device_put(np.ones(3))
    xlamini.device_put(np.ones(3, np.float32))


def test_a_global_level_is_overridden_in_a_context():
    config.update("jax_transfer_guard_host_to_device", "disallow")
    with pytest.raises(xlamini.errors.JaxRuntimeError, match="Disallowed"):
        xlamini.numpy.asarray(np.ones(3, np.float32))
    with xlamini.transfer_guard("allow"):
        xlamini.numpy.asarray(np.ones(3, np.float32))


def test_guards_of_contexts_that_overlap_leave_nothing_behind():
    """The contexts of asyncio's tasks may end in the order in which they began."""
    x = np.ones(3, np.float32)
    first, second = xlamini.transfer_guard("disallow"), xlamini.transfer_guard_host_to_device("disallow")
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    with pytest.raises(xlamini.errors.JaxRuntimeError, match="Disallowed"):
        xlamini.numpy.asarray(x)
    second.__exit__(None, None, None)
    assert xlamini.numpy.asarray(x).tolist() == [1, 1, 1]


def test_a_level_that_does_not_exist():
    with pytest.raises(ValueError, match=r"flag transfer_guard takes 'allow' or 'log' or 'disallow'.*did you mean"):
        xlamini.transfer_guard("disalow")
