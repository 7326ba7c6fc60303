"""The tables in files of JAX's exported functions: the names of their fields, and what some numbers stand for."""
from __future__ import annotations

EXPORTED = (
    "serialization_version function_name in_tree in_avals out_tree out_avals nr_devices_short in_shardings "
    "out_shardings platforms ordered_effects unordered_effects disabled_checks mlir_module_serialized "
    "calling_convention_version module_kept_var_idx uses_global_constants vjp nr_devices unique_avals "
    "unique_abstract_meshes unique_named_shardings in_avals_idxs out_avals_idxs in_shardings_idxs out_shardings_idxs"
).split()
TREE = "kind children children_names custom_name custom_auxdata".split()
AVAL = "kind shape dtype memory_space".split()
SHARDING = "kind hlo_sharding_proto named_sharding".split()
NAMED_SHARDING = "mesh spec memory_kind abstract_mesh_idx".split()
MESH = "axis_sizes axis_names axis_types abstract_device".split()
SPEC = "partitions reduced unreduced".split()
AXES = ("axes",)
EFFECT = ("type_name",)
CHECK = "kind custom_call_target".split()

DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 bfloat16 "
    "int4 uint4 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float0 float8_e4m3 "
    "float8_e3m4 float8_e8m0fnu float4_e2m1fn key<fry> key<rbg> key<urbg>"
).split()
SPACES = ("Device", "Device", "Host", "Any")
AXIS_TYPES = (None, "Auto", "Explicit", "Manual")
LEAF, NONE, TUPLE, LIST, DICT, CUSTOM = range(6)
ORDERED_DICT = "collections.OrderedDict"
"""The name under which JAX registers OrderedDict, with the keys as JSON."""
