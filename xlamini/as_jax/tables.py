"""Modules of jax without a file in the overlay, and names that lie elsewhere: two rules and three tables.

A module has the names of xlamini's module of that name, and `jax._src.a.b` has those of the public `jax.a.b`. The first
table has the modules whose names are those of modules of other names, which may be several; the second, single names;
the third, names that libraries import but cannot use.
"""
from __future__ import annotations

_PRIVATE = {
    "jax": "api array basearray config core pjit pmap shard_map xla_bridge",
    "jax.core": "abstract_arrays",
    "jax.debug": "debugger debugger.core debugging",
    "jax.errors": "core",
    "jax.experimental": "callback",
    "jax.experimental.checkify": "checkify",
    "jax.experimental.compilation_cache.compilation_cache": "compilation_cache",
    "jax.experimental.custom_partitioning": "custom_partitioning custom_partitioning_sharding_rule",
    "jax.experimental.hijax": "hijax",
    "jax.experimental.layout": "layout",
    "jax.experimental.mesh_utils": "mesh_utils",
    "jax.experimental.xla_metadata": "xla_metadata xla_metadata_lib",
    "jax.export": "export._export export.serialization export.shape_poly",
    "jax.extend.core": "effects",
    "jax.extend.linear_util": "linear_util",
    "jax.extend.random": "prng random.prng random.threefry2x32",
    "jax.extend.source_info_util": "source_info_util",
    "jax.image": "image.scale",
    "jax.interpreters.ad": "ad_util",
    "jax.lax": """
        lax.ann lax.control_flow lax.control_flow.common lax.control_flow.conditionals lax.control_flow.loops
        lax.control_flow.solves lax.convolution lax.fft lax.lax lax.other lax.parallel lax.slicing lax.special lax.utils
        lax.windowed_reductions""",
    "jax.nn": "nn.functions",
    "jax.numpy": """
        dtypes numpy.array_constructors numpy.array_creation numpy.array_methods numpy.einsum
        numpy.index_tricks numpy.indexing numpy.lax_numpy numpy.polynomial numpy.reductions numpy.scalar_types
        numpy.setops numpy.sorting numpy.tensor_contractions numpy.ufunc_api numpy.ufuncs numpy.util numpy.vectorize
        numpy.window_functions""",
    "jax.ops": "ops.scatter",
    "jax.random": "random.core",
    "jax.scipy.optimize": "scipy.optimize.bfgs scipy.optimize.line_search scipy.optimize.minimize",
    "jax.scipy.special": "ops.special",
    "jax.sharding": "interpreters.pxla mesh named_sharding partition_spec sharding_impls",
    "jax.test_util": "public_test_util test_util",
    "": "clusters compiler dispatch lib lib.mlir lib.mlir.dialects pretty_printer scipy state state.types",
}
"""Modules of `jax._src`, by the module that has their names; the last line is those that have few names."""

_PUBLIC = {
    "": """
        extend.mlir extend.mlir.dialects extend.sharding extend.xla experimental.colocated_python.func
        experimental.compute_on experimental.fused experimental.mosaic experimental.mosaic.gpu
        experimental.pjit experimental.profiler experimental.roofline
        experimental.shard_alike experimental.source_mapper experimental.transfer
        interpreters.pxla lib""",
    "jax.experimental.sparse": """
        experimental.sparse.api experimental.sparse.coo experimental.sparse.csr experimental.sparse.random
        experimental.sparse.util""",
    "jax.extend.core": "core",
    "jax.extend.linear_util": "linear_util",
    "jax.lax": "extend.core.primitives",
}
"""The same for public modules."""


def _by_module() -> dict[str, list[str]]:
    """The modules whose names each module has, in the order of the tables."""
    found: dict[str, list[str]] = {}
    for root, table in (("jax._src", _PRIVATE), ("jax", _PUBLIC)):
        for names, parts in table.items():
            for part in parts.split():
                found.setdefault(f"{root}.{part}", []).extend(filter(None, [names]))
    return found


_MODULES = _by_module()

_KEYS = "xlamini.as_jax.keys"
_PRIVATE_NAMES = "xlamini.as_jax.private_names"
_DIALECTS = {"jaxlib.mlir.dialects": "arith chlo func math scf sdy stablehlo hlo=stablehlo vector"}
_LINALG = """cholesky_p eig_p eigh_p hessenberg_p householder_product_p lu_p qr_p schur_p svd_p triangular_solve_p
    tridiagonal_p tridiagonal_solve_p"""

_NAMES: dict[str, dict[str, str]] = {
    "jax._src.ad_util": {
        "xlamini.primitives.base.elementwise": "add_any_p=add_any",
        "xlamini.primitives.placement.identity": "stop_gradient_p",
    },
    "jax._src.ad_checkpoint": {"xlamini.transforms.remat.checkpoint": "remat_p=checkpoint_p"},
    "jax._src.api_util": {_PRIVATE_NAMES: "infer_argnums_and_argnames"},
    "jax._src.compilation_cache": {_PRIVATE_NAMES: "is_persistent_cache_enabled"},
    "jax._src.debugging": {"jax.debug": "debug_callback=callback debug_print=print"},
    "jax._src.checkify": {"jax.errors": "JaxException=JaxRuntimeError", "typing": "Out=Any"},
    "jax._src.core": {
        _KEYS: "call_p closed_call_p",
        _PRIVATE_NAMES: "typematch typecompat=typematch typecheck is_constant_shape reset_trace_state",
        "builtins": "AxisSize=int DimSize=int",
        "jax._src.util": "safe_map safe_zip",
        "collections.abc": "AxisName=Hashable",
        "operator": "definitely_equal_shape=eq",
        "xlamini.core.program.jaxpr": "JaxprEqnContext=EquationContext",
        "xlamini.extend": "trace_state_clean=trace_is_clean",
        "xlamini.interpreters.physical": "physical_aval",
    },
    "jax._src.array": {_PRIVATE_NAMES: "_reconstruct_array", "xlamini.runtime": "ArrayImpl"},
    "jax._src.deprecations": {_PRIVATE_NAMES: "is_accelerated warn"},
    "jax._src.distributed": {_PRIVATE_NAMES: "global_state"},
    "jax._src.earray": {_PRIVATE_NAMES: "EArray"},
    "jax._src.lax.lax": {_PRIVATE_NAMES: "_const _convert_element_type _delta", "xlamini": "Array"},
    "jax._src.lax.utils": {_PRIVATE_NAMES: "int_dtype_for_dim int_dtype_for_shape"},
    "jax._src.literals": {"xlamini.as_jax.jaxprs.literals": "TypedComplex TypedFloat TypedInt TypedNdArray"},
    "jax._src.op_shardings": {_PRIVATE_NAMES: "are_hlo_shardings_equal is_hlo_sharding_replicated"},
    "jax._src.random.prng": {"xlamini.runtime.arrays.keys": "KeyTy=KeyType KeyType PRNGKeyArray"},
    "jax._src.traceback_util": {
        _PRIVATE_NAMES: "_exclude_paths include_frame",
        "xlamini.core.errors.api_boundary": "api_boundary",
        "xlamini.core.errors.frames": "register_exclusion=hide_file",
    },
    "jax._src.tree_util": {_PRIVATE_NAMES: "_registry prefix_errors"},
    "jax._src.typing": {_PRIVATE_NAMES: "Shape", "numpy": "DType=dtype", "xlamini": "Array"},
    "jax._src.dispatch": {
        "xlamini.as_jax.overlay.primitive": "apply_primitive",
        "xlamini.runtime.execution.effects": "wait_for_tokens=effects_barrier",
    },
    "jax._src.lib": {"jaxlib": "_jax xla_client version", "jaxlib._jax": "jax_jit pytree"},
    "jax._src.util": {"functools": "cache=lru_cache memoize=cache weakref_lru_cache=lru_cache"},
    "jax._src.lib.mlir": {"jaxlib.mlir": "ir passmanager"},
    "jax._src.lib.mlir.dialects": _DIALECTS,
    "jax._src.mesh": {"xlamini.sharding": "get_concrete_mesh=get_mesh"},
    "jax._src.pjit": {
        _KEYS: "UNSPECIFIED UnspecifiedValue",
        "jax.api_util": "debug_info",
        "jax._src": "mesh_lib=mesh",
        "jax.lax": "with_sharding_constraint",
        "xlamini": "pjit=jit",
        "xlamini.sharding": "auto_axes explicit_axes reshard",
        "xlamini.staging.call.call": "jit_p",
    },
    "jax._src.sharding_impls": {
        _PRIVATE_NAMES: "GSPMDSharding",
        _KEYS: "UNSPECIFIED UnspecifiedValue",
        "xlamini.runtime.sharding": "make_single_device_sharding",
    },
    "jax._src.state.types": {
        "xlamini.core.program.ref_types": "AbstractRef",
        "xlamini.numpy.ref_views": "TransformedRef",
    },
    "jax._src.effects": {
        _KEYS: """
            control_flow_allowed_effects custom_derivatives_allowed_effects lowerable_effects remat_allowed_effects""",
    },
    "jax.core": {"xlamini.as_jax.overlay.traces": "is_concrete is_constant_dim trace_ctx"},
    "jax.experimental.array_serialization.serialization": {
        _PRIVATE_NAMES: "GlobalAsyncCheckpointManager GlobalAsyncCheckpointManagerBase",
    },
    "jax.experimental.colocated_python.serialization": {
        "jax._src": "xb=xla_bridge",
        "xlamini.runtime.sharding": "DeviceList",
    },
    "jax.experimental.pjit": {"xlamini": "pjit=jit"},
    "jax.extend.core.primitives": {
        _KEYS: "call_p closed_call_p empty2_p get_p ragged_all_to_all_p swap_p",
        "xlamini.custom_derivatives": "custom_jvp_call_p custom_vjp_call_p",
        "xlamini.lax.linalg": _LINALG,
        "xlamini.primitives.base.elementwise": "add_jaxvals_p=add_any",
        "xlamini.primitives.random.random_keys": """
            random_bits_p=bits_p random_fold_in_p=fold_in_p random_seed_p=seed_p random_split_p=split_p""",
        "xlamini.primitives.random.threefry": "threefry2x32_p",
        "xlamini.random.gamma": "random_gamma_p",
        "xlamini.staging.call.call": "jit_p",
        "xlamini.transforms.custom.linear_map": "custom_lin_p",
        "xlamini.transforms.remat.checkpoint": "remat_p=checkpoint_p",
        "xlamini.transforms.remat.checkpoint_name": "name_p",
    },
    "jax.extend.backend": {"xlamini": "clear_backends=clear_caches clear_in_memory_compilation_cache=clear_caches"},
    "jax.extend.core": {"xlamini.core.errors": "JaxprTypeError"},
    "jax.extend.ifrt_programs": {_PRIVATE_NAMES: "ifrt_programs"},
    "jax.extend.mlir": {"jaxlib.mlir": "ir passmanager"},
    "jax.extend.mlir.dialects": _DIALECTS,
    "jax.interpreters.ad": {"xlamini.primitives.base.elementwise": "add_jaxvals=add_any add_jaxvals_p=add_any"},
    "jax.interpreters.batching": {"xlamini.numpy": "make_iota=arange"},
    "jax.interpreters.mlir": {"xlamini.sharding": "Mesh"},
    "jax.interpreters.xla": {"jaxlib._jax": "Backend=Client"},
    "jax.lib": {"jaxlib": "__version__"},
}
"""Names by their module and the module in which they are found, there perhaps by another name."""

_REFUSED = {
    "jax._src.sharding_impls": ("parse_flatten_op_sharding", "arrays say by NamedSharding where they lie"),
    "jax.experimental.array_serialization.serialization": (
        "get_tensorstore_spec",
        "save with experimental.array_serialization.pytree_serialization, or with orbax-checkpoint",
    ),
    "jax.experimental.colocated_python.serialization": (
        "_get_cpu_device_map _reduce_device_list _reduce_mesh _reduce_single_device_sharding",
        "there are no remote hosts to send a sharding to",
    ),
}
"""Functions that refuse to be called, as the error names them, and what to do instead."""


def table_of(module: str) -> dict[str, tuple[str, str]]:
    """The names that the second table gives to a module, each with where it is found and by which name."""
    entries = [(source, name) for source, names in _NAMES.get(module, {}).items() for name in names.split()]
    return {name.partition("=")[0]: (source, name.rpartition("=")[2]) for source, name in entries}


def refused(module: str) -> dict[str, tuple[str, str]]:
    """The names that the third table gives to a module, each as its error says it and with what to do instead."""
    names, instead = _REFUSED.get(module, ("", ""))
    return {name.rpartition(".")[2]: (name, instead) for name in names.split()}


def is_listed(module: str) -> bool:
    """Whether one of the tables has a module."""
    return module in _MODULES or module in _NAMES or module in _REFUSED


def listed(module: str) -> list[str]:
    """The modules whose names a module has, by the first table."""
    return _MODULES.get(module, [])
