"""xlamini: see, trust and change what happens between your Python and the machine.

A Python function on arrays is traced once into a jaxpr; every transformation is a function from jaxpr to jaxpr; the
final jaxpr becomes StableHLO, and PJRT runs it. `import xlamini as jax` reads naturally: names, arguments and meanings
are JAX's.
"""

# ruff: noqa: E402, I001
from xlamini.runtime.versions import check_jaxlib, warn_of_jax

check_jaxlib()
warn_of_jax()

from typing import TYPE_CHECKING

from xlamini.core.gc_pause import paused_gc as _paused_gc

with _paused_gc():  # which finds nothing in what imports make, and takes a tenth of their time
    from xlamini.core.config import (
        config as config,
        default_device as default_device,
        default_matmul_precision as default_matmul_precision,
        default_prng_impl as default_prng_impl,
        disable_jit as disable_jit,
        enable_checks as enable_checks,
        enable_x64 as enable_x64,
        numpy_dtype_promotion as numpy_dtype_promotion,
        numpy_rank_promotion as numpy_rank_promotion,
    )
    from xlamini.core.dtypes import float0 as float0
    from xlamini.core.api_boundary import edge_of_face as _edge_of_face
    from xlamini.core.lazy import lazy_parts as _lazy_parts
    from xlamini.core.tracer import named_scope as named_scope
    from xlamini.core.version import __version__ as __version__
    from xlamini.runtime.array import Array as Array
    from xlamini.runtime.effects import effects_barrier as effects_barrier
    from xlamini.runtime.conversions import device_get as device_get
    from xlamini.runtime.devices.platforms import (
        Device as Device,
        default_backend as default_backend,
        device_count as device_count,
        devices as devices,
        local_device_count as local_device_count,
        local_devices as local_devices,
        process_count as process_count,
        process_index as process_index,
        process_indices as process_indices,
    )
    from xlamini.transforms import install_hooks as _start
    from xlamini.transforms.derivatives.jacobian import (
        hessian as hessian, jacfwd as jacfwd, jacobian as jacobian, jacrev as jacrev
    )
    from xlamini.staging.run.jit import jit as jit
    from xlamini.transforms.derivatives.jvp import jvp as jvp, linearize as linearize
    from xlamini.staging.trace.make_jaxpr import eval_shape as eval_shape, make_jaxpr as make_jaxpr
    from xlamini.transforms.sharding.device_put import (
        block_until_ready as block_until_ready,
        clear_caches as clear_caches,
        device_put as device_put,
    )
    from xlamini.staging.trace.shape_struct import ShapeDtypeStruct as ShapeDtypeStruct
    from xlamini.staging.trace.typeof import typeof as typeof
    from xlamini.transforms.derivatives.value_and_grad import grad as grad, value_and_grad as value_and_grad
    from xlamini.transforms.derivatives.vjp import linear_transpose as linear_transpose, vjp as vjp
    from xlamini.transforms.vmap import vmap as vmap

    from xlamini import errors as errors, numpy as numpy, tree as tree, tree_util as tree_util

if TYPE_CHECKING:
    from xlamini.doctor.facts import print_environment_info as print_environment_info
    from xlamini.core.sharding.partition_spec import PartitionSpec as P
    from xlamini.runtime.meshes.current_mesh import set_mesh as set_mesh
    from xlamini.runtime.meshes.array_assembly import (
        make_array_from_callback as make_array_from_callback,
        make_array_from_process_local_data as make_array_from_process_local_data,
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
    )
    from xlamini.runtime.meshes.mesh import make_mesh as make_mesh
    from xlamini.runtime.meshes.named_sharding import NamedSharding as NamedSharding
    from xlamini.runtime.profiler.recording import live_arrays as live_arrays
    from xlamini.runtime.meshes.shards import Shard as Shard
    from xlamini.runtime.targets.topology import Target as Target, target as target
    from xlamini.ref import Ref as Ref, freeze as freeze, new_ref as new_ref
    from xlamini.transforms.callbacks.pure_callback import pure_callback as pure_callback
    from xlamini.transforms.custom.closure_convert import closure_convert as closure_convert
    from xlamini.transforms.custom.custom_gradient import custom_gradient as custom_gradient
    from xlamini.transforms.custom.custom_jvp import custom_jvp as custom_jvp
    from xlamini.transforms.custom.custom_vjp import custom_vjp as custom_vjp
    from xlamini.transforms.derivatives.fwd_and_bwd import fwd_and_bwd as fwd_and_bwd
    from xlamini.transforms.shard_map.pmap import pmap as pmap
    from xlamini.transforms.shard_map.api import shard_map as shard_map
    from xlamini.transforms.shard_map.smap import smap as smap
    from xlamini.transforms.remat.checkpoint import checkpoint as checkpoint, checkpoint as remat
    from xlamini.staging.aot.load import load as load
    from xlamini.transforms.sharding.constraint import reshard as reshard

_edge_of_face(globals())

_LAZY = (
    "cache",
    "debug",
    "distributed",
    "experimental",
    "export",
    "lax",
    "multihost",
    "nn",
    "profiler",
    "random",
    "ref",
    "scipy",
    "sharding",
    "image",
    "dtypes",
    "ops",
    "flatten_util",
    "dlpack",
    "stages",
    "ad_checkpoint",
    "checkpoint_policies",
    "custom_batching",
    "custom_derivatives",
    "test_util",
)

_MEMBERS = {
    "NamedSharding": "runtime.meshes.named_sharding.NamedSharding",
    "P": "core.sharding.partition_spec.PartitionSpec",
    "Ref": "ref.Ref",
    "Shard": "runtime.meshes.shards.Shard",
    "checkpoint": "transforms.remat.checkpoint.checkpoint",
    "closure_convert": "transforms.custom.closure_convert.closure_convert",
    "custom_gradient": "transforms.custom.custom_gradient.custom_gradient",
    "custom_jvp": "transforms.custom.custom_jvp.custom_jvp",
    "custom_vjp": "transforms.custom.custom_vjp.custom_vjp",
    "freeze": "ref.freeze",
    "fwd_and_bwd": "transforms.derivatives.fwd_and_bwd.fwd_and_bwd",
    "load": "staging.aot.load.load",
    "live_arrays": "runtime.profiler.recording.live_arrays",
    "make_array_from_callback": "runtime.meshes.array_assembly.make_array_from_callback",
    "make_array_from_process_local_data": "runtime.meshes.array_assembly.make_array_from_process_local_data",
    "make_array_from_single_device_arrays": "runtime.meshes.array_assembly.make_array_from_single_device_arrays",
    "make_mesh": "runtime.meshes.mesh.make_mesh",
    "new_ref": "ref.new_ref",
    "pmap": "transforms.shard_map.pmap.pmap",
    "print_environment_info": "doctor.facts.print_environment_info",
    "pure_callback": "transforms.callbacks.pure_callback.pure_callback",
    "remat": "transforms.remat.checkpoint.checkpoint",
    "reshard": "transforms.sharding.constraint.reshard",
    "set_mesh": "runtime.meshes.current_mesh.set_mesh",
    "shard_map": "transforms.shard_map.api.shard_map",
    "smap": "transforms.shard_map.smap.smap",
    "Target": "runtime.targets.topology.Target",
    "target": "runtime.targets.topology.target",
}

__getattr__, __dir__ = _lazy_parts(globals(), _LAZY, _MEMBERS)
