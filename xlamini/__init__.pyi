# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini import (
    ad as ad, ad_checkpoint as ad_checkpoint, api_util as api_util, cache as cache,
    checkpoint_policies as checkpoint_policies,
    custom_batching as custom_batching, custom_derivatives as custom_derivatives, debug as debug,
    distributed as distributed, dlpack as dlpack, dtypes as dtypes, errors as errors,
    example_libraries as example_libraries, experimental as experimental, export as export,
    extend as extend, ffi as ffi,
    flatten_util as flatten_util, image as image, lax as lax, memory as memory, monitoring as monitoring,
    multihost as multihost, nn as nn, numpy as numpy, ops as ops, profiler as profiler, random as random, ref as ref,
    scipy as scipy, sharding as sharding, stages as stages, test_util as test_util, tree as tree,
    tree_util as tree_util, typing as typing, version as version,
)
from xlamini.core.flags.compile_flags import CompilerEffortLevel as CompilerEffortLevel
from xlamini.core.flags.config import (
    config as config, default_device as default_device, default_matmul_precision as default_matmul_precision,
    default_prng_impl as default_prng_impl, disable_jit as disable_jit, enable_checks as enable_checks,
    enable_x64 as enable_x64, legacy_prng_key as legacy_prng_key,
    numpy_dtype_promotion as numpy_dtype_promotion, numpy_rank_promotion as numpy_rank_promotion,
)
from xlamini.core.flags.jax_flags import (
    allow_f16_reductions as allow_f16_reductions, auto_pcast as auto_pcast,
    check_tracer_leaks as check_tracer_leaks, checking_leaks as checking_leaks, debug_infs as debug_infs,
    debug_key_reuse as debug_key_reuse, debug_nans as debug_nans, debug_purity as debug_purity,
    enable_custom_prng as enable_custom_prng, explain_cache_misses as explain_cache_misses,
    jax2tf_associative_scan_reductions as jax2tf_associative_scan_reductions, log_compiles as log_compiles,
    no_execution as no_execution, no_tracing as no_tracing,
    remove_size_one_mesh_axis_from_type as remove_size_one_mesh_axis_from_type,
    softmax_custom_jvp as softmax_custom_jvp, threefry_partitionable as threefry_partitionable,
)
from xlamini.core.dtypes import float0 as float0
from xlamini.core.sharding.partition_spec import P as P
from xlamini.core.tracing.compile_time import ensure_compile_time_eval as ensure_compile_time_eval
from xlamini.core.tracing.state import named_call as named_call, named_scope as named_scope
from xlamini.core.caching.memo import clear_caches as clear_caches
from xlamini.core.flags.user_context import make_user_context as make_user_context
from xlamini.core.version import __version__ as __version__, __version_info__ as __version_info__
from xlamini.doctor.facts import print_environment_info as print_environment_info
from xlamini.numpy.indexing.slices import ds as ds
from xlamini.ref import (
    empty_ref as empty_ref, free_ref as free_ref, freeze as freeze, new_ref as new_ref, Ref as Ref,
)
from xlamini.runtime.arrays.array import Array as Array
from xlamini.runtime.arrays.conversions import copy_to_host_async as copy_to_host_async, device_get as device_get
from xlamini.runtime.devices.platforms import (
    default_backend as default_backend, Device as Device, device_count as device_count, devices as devices,
    host_count as host_count, host_id as host_id, host_ids as host_ids,
    local_device_count as local_device_count, local_devices as local_devices, process_count as process_count,
    process_index as process_index, process_indices as process_indices,
)
from xlamini.runtime.execution.effects import effects_barrier as effects_barrier
from xlamini.runtime.meshes.current_mesh import (
    get_abstract_mesh as get_abstract_mesh, get_mesh as get_mesh, set_mesh as set_mesh,
    use_abstract_mesh as use_abstract_mesh,
)
from xlamini.runtime.meshes.array_assembly import (
    make_array_from_callback as make_array_from_callback,
    make_array_from_process_local_data as make_array_from_process_local_data,
    make_array_from_single_device_arrays as make_array_from_single_device_arrays,
)
from xlamini.runtime.meshes.mesh import make_mesh as make_mesh
from xlamini.runtime.meshes.named_sharding import NamedSharding as NamedSharding
from xlamini.runtime.meshes.shards import Shard as Shard
from xlamini.runtime.profiler.recording import live_arrays as live_arrays
from xlamini.runtime.arrays.transfer_guards import (
    array_garbage_collection_guard as array_garbage_collection_guard, thread_guard as thread_guard,
    transfer_guard as transfer_guard,
    transfer_guard_device_to_device as transfer_guard_device_to_device,
    transfer_guard_device_to_host as transfer_guard_device_to_host,
    transfer_guard_host_to_device as transfer_guard_host_to_device,
)
from xlamini.runtime.targets.topology import Target as Target, target as target
from xlamini.transforms.callbacks.pure_callback import pure_callback as pure_callback
from xlamini.transforms.custom.closure_convert import closure_convert as closure_convert
from xlamini.transforms.custom.custom_gradient import custom_gradient as custom_gradient
from xlamini.transforms.custom.custom_jvp import custom_jvp as custom_jvp
from xlamini.transforms.custom.custom_vjp import custom_vjp as custom_vjp
from xlamini.transforms.derivatives.fwd_and_bwd import fwd_and_bwd as fwd_and_bwd
from xlamini.transforms.derivatives.jacobian import (
    hessian as hessian, jacfwd as jacfwd, jacobian as jacobian, jacrev as jacrev,
)
from xlamini.staging.run.jit.jit_api import jit as jit
from xlamini.staging.run.jit.jit_options import Inline as Inline
from xlamini.transforms.derivatives.jvp import jvp as jvp, linearize as linearize
from xlamini.staging.run.jit.make_jaxpr import eval_shape as eval_shape, make_jaxpr as make_jaxpr
from xlamini.transforms.checkify.api import checked as checked
from xlamini.analysis.lints import lint as lint
from xlamini.inspection.api import inspect as inspect
from xlamini.transforms.shard_map.pmap import pmap as pmap
from xlamini.transforms.shard_map.api import shard_map as shard_map
from xlamini.transforms.shard_map.smap import smap as smap
from xlamini.transforms.sharding.device_put import (
    block_until_ready as block_until_ready, device_put as device_put,
)
from xlamini.transforms.remat.checkpoint import checkpoint as checkpoint, remat as remat
from xlamini.staging.aot.load import load as load
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct as ShapeDtypeStruct
from xlamini.transforms.sharding.constraint import reshard as reshard
from xlamini.staging.trace.typeof import typeof as typeof
from xlamini.transforms.derivatives.linear_transpose import linear_transpose as linear_transpose
from xlamini.transforms.derivatives.value_and_grad import grad as grad, value_and_grad as value_and_grad
from xlamini.transforms.derivatives.vjp import vjp as vjp
from xlamini.transforms.vmap import vmap as vmap
