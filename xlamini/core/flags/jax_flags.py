"""JAX's other flags: one table of what each of them does here.

The flags in config.py have JAX's names and meanings. JAX has a hundred more. A flag of `NO_MEANING` is accepted in
silence, because nothing that a program computes or reports depends on it here. A flag of `NO_EFFECT` asks for something
that xlamini does not do, so a value other than JAX's default is accepted with one warning.
"""

from __future__ import annotations

import logging
import os
import warnings
from contextlib import AbstractContextManager
from typing import Any, Final

from xlamini.core.errors.frames import user_stacklevel
from xlamini.core.flags.config import ALIASES, DISPATCH, TRACE, Flag, flags
from xlamini.core.flags.environment_variables import warn_of_names

_STABLE = "all code paths are the new ones"
_REMOTE = "there is no transfer server between hosts"
_PGLE = "there is no profile-guided compilation"
_ONE_DEVICE = "kernels do not send to other devices"
_MESSAGES = "errors name one line of the program"
_LOGGED = "nothing is logged yet"
_PLAIN = "connections between processes are not encrypted"

NO_MEANING: dict[str, tuple[Any, str]] = {
    "accurate_erf_inv": (False, "erf_inv is XLA's"),
    "allow_f16_reductions": (True, "sums in float16 are always allowed"),
    "auto_pcast": (True, "values are cast to varying where they meet"),
    "bcoo_cusparse_lowering": (False, "sparse products are gathers and sums"),
    "check_proxy_envs": (True, "no proxy is used"),
    "check_vma": (False, "an argument of shard_map"),
    "compilation_cache_expect_pgle": (False, _PGLE),
    "compilation_cache_include_metadata_in_key": (False, "locations are never part of the key"),
    "compiler_detailed_logging_min_ops": (10, "the compiler logs nothing"),
    "cpu_enable_async_dispatch": (True, "XLA decides"),
    "cpu_get_global_topology_timeout_minutes": (5, "the timeouts of distributed.initialize apply"),
    "cpu_get_local_topology_timeout_minutes": (2, "the timeouts of distributed.initialize apply"),
    "cross_host_transfer_socket_address": ("", _REMOTE),
    "cross_host_transfer_timeout_seconds": (None, _REMOTE),
    "cross_host_transfer_transfer_size": (None, _REMOTE),
    "cross_host_transport_addresses": ("", _REMOTE),
    "custom_jvp3": (False, _STABLE),
    "custom_vjp3": (False, _STABLE),
    "debug_leaked_clients_on_clear_backends": (False, "clients live as long as the process"),
    "debug_log_modules": ("", "all messages of the logger xlamini are warnings"),
    "disable_vmap_shmap_error": (False, "a spec that named an axis twice would mean nothing"),
    "disallow_mesh_context_manager": (False, "a mesh is set by set_mesh"),
    "eager_constant_folding": (False, "operations on known values are computed while tracing"),
    "embedded_constants_max_bytes": (32, "captured arrays are arguments of the program"),
    "enable_preemption_service": (True, "the service starts with the process group"),
    "export_deserialize_expired_versions": (False, "exported files have one version"),
    "force_dcn_cross_host_transfers": (False, _REMOTE),
    "include_full_tracebacks_in_locations": (True, "a location is one line of the program"),
    "jax2tf_associative_scan_reductions": (False, "there is no jax2tf"),
    "jax2tf_default_native_serialization": (True, "there is no jax2tf"),
    "mosaic_allow_hlo": (False, "a kernel is a Mosaic module alone"),
    "mosaic_unzip_debug_locations": (True, "a location is one line of the program"),
    "pallas_auto_assign_collective_ids": ("no", _ONE_DEVICE),
    "pallas_auto_assign_collective_ids_limit": (25, _ONE_DEVICE),
    "pallas_enable_debug_checks": (False, "debug_check is for the checking interpreter"),
    "pallas_poison_buffers": (False, "the checking interpreter finds reads of such memory"),
    "pallas_use_mosaic_gpu": (True, "kernels for a GPU go through Triton"),
    "pallas_verbose_errors": (False, _MESSAGES),
    "persistent_cache_enable_xla_caches": ("xla_gpu_per_fusion_autotune_cache_dir", "programs alone are cached"),
    "pgle_aggregation_percentile": (90, _PGLE),
    "pgle_profiling_runs": (3, _PGLE),
    "pprint_use_color": (True, "printed programs have no colors"),
    "ragged_dot_use_gpu_pallas_triton_lowering": (False, "the lowering decides by platform"),
    "ragged_dot_use_ragged_dot_instruction": (True, "the lowering decides by platform"),
    "raise_on_ppermute_sort_diff": (True, "positions count in the order of the names given"),
    "refs_to_pins": (False, "refs become arguments and results"),
    "remat3": (False, _STABLE),
    "remat_barrier_no_cotangents": (False, "barriers hold what checkpoint recomputes"),
    "remove_custom_partitioning_ptr_from_cache_key": (False, "keys hold no addresses"),
    "remove_size_one_mesh_axis_from_type": (False, "types name every mesh axis"),
    "scan3": (False, _STABLE),
    "send_traceback_to_runtime": ("off", "the runtime gets no tracebacks"),
    "serialization_version": (0, "exported files have one version"),
    "share_binary_between_hosts_timeout_ms": (1_200_000, "each process compiles"),
    "softmax_custom_jvp": (False, "the derivative of softmax is always the stable one"),
    "source_url_schema": (None, "no HTML is written"),
    "threefry_gpu_kernel_lowering": (False, "random bits are lowered to StableHLO"),
    "traceback_in_locations_limit": (100, "a location is one line of the program"),
    "tracer_error_num_traceback_frames": (5, _MESSAGES),
    "use_cpp_shard_args": (False, _STABLE),
    "use_direct_linearize": (True, _STABLE),
    "use_emit_pipeline_primitive": (False, "emit_pipeline is a loop in the kernel"),
    "use_hlo_logistic_lowering": (None, "the lowering is that of stablehlo.logistic"),
    "use_magma": ("auto", "there is no MAGMA"),
    "use_rgv3": (True, "the lowering chooses the form of groups"),
    "use_shardy_partitioner": (True, "Shardy is the partitioner"),
    "use_simplified_jaxpr_constants": (False, _STABLE),
    "xla_profile_version": (0, _PGLE),
}
"""Flags that change nothing here: JAX's default, and why."""

NO_EFFECT: dict[str, tuple[Any, str]] = {
    "backend_target": ("", "there are no remote services"),
    "cpu_collectives_implementation": ("gloo", "collectives of CPUs are gloo's"),
    "disable_bwd_checks": (False, "the results of custom_vjp rules are always checked"),
    "distributed_debug": (False, _LOGGED),
    "distributed_verify_secure_credentials": (False, _PLAIN),
    "enable_pgle": (False, _PGLE),
    "enable_recoverability": (False, "a process group ends with its first lost process"),
    "error_checking_behavior_divide": ("ignore", "divisions are not checked yet"),
    "error_checking_behavior_nan": ("ignore", "NaNs are not searched for yet"),
    "error_checking_behavior_oob": ("ignore", "traced indices are not checked yet"),
    "experimental_unsafe_xla_runtime_errors": (False, "programs raise no errors of their own"),
    "export_calling_convention_version": (10, "exported files have one version"),
    "export_ignore_forward_compatibility": (False, "programs are exported as they are lowered"),
    "mtls_ca_file": (None, _PLAIN),
    "mtls_cert_file": (None, _PLAIN),
    "mtls_key_file": (None, _PLAIN),
    "mtls_peer_uri_prefix": (None, _PLAIN),
    "mutable_array_checks": (True, "aliased refs are followed"),
    "oneapi_visible_devices": ("all", "there is no oneAPI"),
    "share_binary_between_hosts": (False, "each process compiles"),
}
"""Flags that ask for what is not done here: JAX's default, and what there is."""


class AcceptedFlag(Flag):
    """A flag of JAX that is read back as it was set, and does nothing; it warns of that once, if `warns`."""

    note: str

    def __init__(self, name: str, default: Any, note: str, warns: bool):
        self.warns: bool = False  # while the environment is read
        kind = object if default is None else type(default)
        super().__init__(name, default, f"no effect: {note}", type=kind, optional=True)
        self.warns, self.note = warns, note
        self.checked(self.value)

    def checked(self, value: Any) -> Any:
        value = super().checked(_plain(value))
        if self.warns and value != self.default:
            self.warns = False
            text = f"flag jax_{self.name} is accepted but has no effect in xlamini: {self.note}"
            warnings.warn(text, UserWarning, stacklevel=user_stacklevel())
        return value


_LEVELS = ("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL")


class _LoggingLevel(Flag):
    """The flag that is the level of the library's logger."""

    def __init__(self) -> None:
        super().__init__("logging_level", "NOTSET", "the level of the logger xlamini", choices=_LEVELS)
        if self.value != self.default:
            logging.getLogger("xlamini").setLevel(self.value)

    def checked(self, value: Any) -> Any:
        return super().checked(self.default if value is None else value)

    def set_global(self, value: str) -> None:
        super().set_global(value)
        logging.getLogger("xlamini").setLevel(value)


def _plain(value: Any) -> Any:
    """The text of an enum's member, which JAX takes beside the text."""
    return getattr(value, "value", value)


def _define(table: dict[str, tuple[Any, str]], warns: bool) -> None:
    for name, (default, note) in table.items():
        if name not in flags:
            AcceptedFlag(name, default, note, warns)


# Random numbers
enable_custom_prng: Final = Flag("enable_custom_prng", False, "random.PRNGKey returns a typed key", affects=TRACE)
random_seed_offset: Final = Flag("random_seed_offset", 0, "a number added to every seed", affects=TRACE)
threefry_partitionable: Final = Flag(
    "threefry_partitionable", True, "each device computes its own part of random bits; off: the bits of JAX before 0.5",
    affects=TRACE,
)
high_dynamic_range_gumbel: Final = Flag(
    "high_dynamic_range_gumbel", False, "random.gumbel and random.categorical draw with mode='high'", affects=TRACE
)

debug_key_reuse: Final = Flag(
    "debug_key_reuse", False, "raise an error where a random key is used twice, in a program or outside", affects=TRACE
)

# Logs, at level WARNING of the logger "xlamini"
log_compiles: Final = Flag("log_compiles", False, "log each program that XLA compiles")
logging_level: Final = _LoggingLevel()
explain_cache_misses: Final = Flag("explain_cache_misses", False, "log why a jitted function is traced again")
report: Final = Flag("report", False, "print what was compiled, and why, when the process ends")
log_checkpoint_residuals: Final = Flag("log_checkpoint_residuals", False, "log what each checkpoint stores")
captured_constants_warn_bytes: Final = Flag(
    "captured_constants_warn_bytes", 2_000_000_000, "warn of programs that capture more bytes of arrays; -1 for never"
)
captured_constants_report_frames: Final = Flag(
    "captured_constants_report_frames", 0, "other than 0: name in that warning the line that uses each array"
)
dump_ir_to: Final = Flag("dump_ir_to", "", "a folder to which every compiled program is written")
dump_ir_modes: Final = Flag(
    "dump_ir_modes", "stablehlo", "what is written there: 'stablehlo', 'jaxpr', or both with a comma"
)
include_debug_info_in_dumps: Final = Flag("include_debug_info_in_dumps", True, "the StableHLO there has locations")

hlo_source_file_canonicalization_regex: Final = Flag(
    "hlo_source_file_canonicalization_regex",
    None,
    "a regular expression; what it matches in the paths of source files is left out of programs",
    type=str,
    optional=True,
)

# Checks
no_tracing: Final = Flag("no_tracing", False, "raise an error where a function would be traced")
no_execution: Final = Flag("no_execution", False, "raise an error where a program would run", affects=DISPATCH)
check_tracer_leaks: Final = Flag(
    "check_tracer_leaks", False, "raise an error when a trace ends whose tracers are still referenced", affects=TRACE
)
check_static_indices: Final = Flag(
    "check_static_indices",
    True,
    "an index out of bounds is an error if its number is known; off, as in JAX: a read is clamped, an update dropped",
    affects=TRACE,
)
warn_of_narrowing: Final = Flag(
    "warn_of_narrowing",
    True,
    "warn where array or asarray narrows an array of NumPy's that loses digits or values; off, as in JAX: be silent",
)
debug_nans: Final = Flag(
    "debug_nans", False, "look for NaN in all results, and raise an error that says where it began", affects=DISPATCH
)
debug_infs: Final = Flag(
    "debug_infs", False, "look for infinities in all results, and raise an error likewise", affects=DISPATCH
)
debug_purity: Final = Flag(
    "debug_purity", False, "warn where a value that a function read while it was traced has changed", affects=TRACE
)
explicit_x64_dtypes: Final = Flag(
    "explicit_x64_dtypes",
    "warn",
    "what to do when a 64-bit dtype is asked for while enable_x64 is off",
    affects=TRACE,
    choices=("allow", "warn", "error"),
)

_define(NO_MEANING, warns=False)
_define(NO_EFFECT, warns=True)

# The context managers of JAX's root
allow_f16_reductions: Final = flags["allow_f16_reductions"]
auto_pcast: Final = flags["auto_pcast"]
jax2tf_associative_scan_reductions: Final = flags["jax2tf_associative_scan_reductions"]
remove_size_one_mesh_axis_from_type: Final = flags["remove_size_one_mesh_axis_from_type"]
softmax_custom_jvp: Final = flags["softmax_custom_jvp"]


def checking_leaks() -> AbstractContextManager[None]:
    """A context manager in which flag `check_tracer_leaks` is set.

    A leak is a traced value that outlives its trace, as in a list of the caller's: an UnexpectedTracerError where it
    occurs, not where the value is used.

    >>> seen = []
    >>> with checking_leaks():
    ...     xlamini.jit(lambda x: seen.append(x))(1.0)
    Traceback (most recent call last):
        ...
    xlamini.core.errors.UnexpectedTracerError: Leaked tracers: 1 of <lambda> are referenced after its trace has ended:
      JitTracer(~float32[]), made as its argument 'x', is in a list in the variable 'seen' of <module>
    A traced value must not be kept in a global, an attribute or a closure: return it from the traced function instead.
    """
    return check_tracer_leaks(True)


def warn_of_environment() -> None:
    """Warn of each variable `XLAMINI_…` and `JAX_…` that no flag reads; called when all flags are defined."""
    warn_of_names(os.environ, [*flags, *ALIASES])
