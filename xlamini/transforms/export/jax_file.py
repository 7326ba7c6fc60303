"""The files that JAX's `Exported.serialize()` writes: FlatBuffers, read into the header that files of our own have.

A size is a text, as in our files. JAX writes no constraints on sizes: its module asserts them. Those that follow from
the sizes themselves, which are not negative, are taken here, and all are checked when the module is called.
"""
from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from xlamini.core import example_of, keystr, tree_flatten_with_path
from xlamini.runtime.files.file_format import Damaged, Header, parsed
from xlamini.runtime.files.flatbuffer import Table, first_table, rooted_at
from xlamini.staging.aot import treedef_json
from xlamini.transforms.export.size_texts import promises

T = TypeVar("T")

_EXPORTED = (
    "serialization_version function_name in_tree in_avals out_tree out_avals nr_devices_short in_shardings "
    "out_shardings platforms ordered_effects unordered_effects disabled_checks mlir_module_serialized "
    "calling_convention_version module_kept_var_idx uses_global_constants vjp nr_devices unique_avals "
    "unique_abstract_meshes unique_named_shardings in_avals_idxs out_avals_idxs in_shardings_idxs out_shardings_idxs"
).split()
_TREE = "kind children children_names custom_name custom_auxdata".split()
_AVAL = "kind shape dtype memory_space".split()
_SHARDING = "kind hlo_sharding_proto named_sharding".split()
_NAMED_SHARDING = "mesh spec memory_kind abstract_mesh_idx".split()
_MESH = "axis_sizes axis_names axis_types abstract_device".split()
_SPEC = "partitions reduced unreduced".split()
_CHECK = "kind custom_call_target".split()

_DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 complex64 complex128 bfloat16 "
    "int4 uint4 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 float8_e5m2fnuz float0 float8_e4m3 "
    "float8_e3m4 float8_e8m0fnu float4_e2m1fn key<fry> key<rbg> key<urbg>"
).split()
_SPACES = ("Device", "Device", "Host", "Any")
_AXIS_TYPES = (None, "Auto", "Explicit", "Manual")
_LEAF, _NONE, _TUPLE, _LIST, _DICT, _CUSTOM = range(6)
_ORDERED_DICT = "collections.OrderedDict"
"""The name under which JAX registers OrderedDict, with the keys as JSON."""


class JaxFile:
    """The kind of files that JAX writes, with the `read` of a Kind."""

    def read(self, data: bytes, build: Callable[[Header, list[bytes]], T], again: str, begin: str = "") -> T:
        """Parse a file, as `Kind.read`: the parts are the StableHLO, and a file of the derivative if there is one."""
        return parsed(lambda: build(*_unpacked(data)), again, begin)


def is_of_jax(data: bytes) -> bool:
    """Whether bytes begin as a file of JAX: with the place of a table inside of them."""
    try:
        return first_table(data[: len(data) // 4 * 4], _EXPORTED).has("mlir_module_serialized")
    except Damaged:
        return False


def _unpacked(data: bytes) -> tuple[Header, list[bytes]]:
    table = first_table(data, _EXPORTED)
    if any(table.tables(name, ("type_name",)) for name in ("ordered_effects", "unordered_effects")):
        raise ValueError("it has side effects, which exported functions have not here")
    derivative = table.table("vjp", _EXPORTED)
    parts = [table.data("mlir_module_serialized")]
    return _header(table), parts if derivative is None else [*parts, rooted_at(data, derivative)]


def _header(table: Table) -> Header:
    in_tree = _tree(_needed(table.table("in_tree", _TREE)))
    avals = _avals(table)
    return {
        "name": table.text("function_name"),
        "by": "JAX",
        "convention": table.number("calling_convention_version", "H"),
        "in_tree": in_tree,
        "out_tree": _tree(_needed(table.table("out_tree", _TREE))),
        **avals,
        "constraints": promises(size for each in avals.values() for _, sizes, _, _ in each for size in sizes),
        "names": _names(in_tree),
        "platforms": table.texts("platforms"),
        "checks": [_check(each) for each in table.tables("disabled_checks", _CHECK)],
        "kept": table.numbers("module_kept_var_idx", "H"),
        "passes_float0": True,
        **_shardings(table),
    }


def _needed(table: Table | None) -> Table:
    if table is None:
        raise Damaged("has a part less than a file of JAX")
    return table


def _names(in_tree: Any) -> list[str]:
    """The names of the arguments as JAX has them in its errors, such as `args[0]['w']`."""
    paths, _ = tree_flatten_with_path(example_of(treedef_json.read(in_tree)))
    return [f"{('args', 'kwargs')[path[0].idx]}{keystr(path[1:])}" for path, _ in paths]


# --- structures


def _tree(table: Table) -> Any:
    """A structure as `treedef_json` has it."""
    kind, children = table.number("kind", "b"), [_tree(child) for child in table.tables("children", _TREE)]
    if kind in (_LEAF, _NONE):
        return "*" if kind == _LEAF else None
    if kind in (_TUPLE, _LIST):
        return {"tuple" if kind == _TUPLE else "list": children}
    if kind == _DICT:
        return {"dict": list(zip(table.texts("children_names"), children, strict=True))}
    if kind == _CUSTOM:
        return _node(table.text("custom_name"), table.data("custom_auxdata"), children)
    raise ValueError(f"it has containers of the kind {kind}, which is unknown here")


def _node(name: str, data: bytes, children: Sequence[Any]) -> Any:
    if name == _ORDERED_DICT:
        return {"OrderedDict": list(zip(json.loads(data), children, strict=True))}
    return {"node": [name, base64.b64encode(data).decode(), children]}


# --- types


def _avals(table: Table) -> dict[str, list[Any]]:
    """The types as `aval_json` has them: numbers of a list without repetitions, or in older files the types."""
    unique = [_aval(each) for each in table.tables("unique_avals", _AVAL)]
    return {name: _chosen(table, name, unique) for name in ("in_avals", "out_avals")}


def _chosen(table: Table, name: str, unique: Sequence[Any]) -> list[Any]:
    given = [_aval(each) for each in table.tables(name, _AVAL)]
    return [unique[i] for i in table.numbers(f"{name}_idxs", "I")] or given


def _aval(table: Table) -> list[Any]:
    if table.number("kind", "b"):
        raise ValueError("it has arguments or results that are no arrays")
    dtype, space = table.number("dtype", "b"), table.number("memory_space", "b")
    if not 0 <= dtype < len(_DTYPES) or not 0 <= space < len(_SPACES):
        raise ValueError(f"it has arrays of the dtype {dtype} in the memory {space}, which are unknown here")
    return [_DTYPES[dtype], [_size(text) for text in table.texts("shape")], False, _SPACES[space]]


def _size(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdecimal() else text


def _check(table: Table) -> str:
    kind = table.number("kind", "b")
    if kind not in (0, 1):
        raise ValueError(f"it was exported without a safety check of the kind {kind}, which is unknown here")
    return f"custom_call:{table.text('custom_call_target')}" if kind else "platform"


# --- shardings


def _shardings(table: Table) -> Header:
    """The fields of a header for devices and shardings."""
    meshes = [_mesh(each) for each in table.tables("unique_abstract_meshes", _MESH)]
    unique = [None, *(_named(each, meshes) for each in table.tables("unique_named_shardings", _NAMED_SHARDING))]
    devices = table.number("nr_devices", "I") or table.number("nr_devices_short", "h")
    sides = {name: _side(table, name, unique, meshes, devices) for name in ("in_shardings", "out_shardings")}
    return {"devices": devices, "meshes": meshes, **sides}


def _side(table: Table, name: str, unique: Sequence[Any], meshes: list[Any], devices: int) -> list[Any]:
    given = [_sharding(each, meshes, devices) for each in table.tables(name, _SHARDING)]
    return [unique[i] for i in table.numbers(f"{name}_idxs", "I")] or given


def _sharding(table: Table, meshes: list[Any], devices: int) -> Any:
    """A sharding of a file without a list of them; one of XLA's is no more than the number of devices if that is 1."""
    named = table.table("named_sharding", _NAMED_SHARDING)
    if named is not None:
        return _named(named, meshes)
    if table.has("hlo_sharding_proto") and devices > 1:
        raise ValueError("it has shardings without meshes, as JAX wrote them before 2026; export it with a later JAX")
    return None


def _named(table: Table, meshes: list[Any]) -> list[Any]:
    """The number of a sharding's mesh, which joins the meshes if it is not there, and the spec."""
    mesh = table.table("mesh", _MESH)
    number = table.number("abstract_mesh_idx", "I")
    if mesh is not None and number >= len(meshes):
        number = len(meshes)
        meshes.append(_mesh(mesh))
    return [number, _spec(_needed(table.table("spec", _SPEC)))]


def _mesh(table: Table) -> list[Any]:
    kinds = [dict(enumerate(_AXIS_TYPES))[kind] for kind in table.numbers("axis_types", "b")]
    return [list(axis) for axis in zip(table.texts("axis_names"), table.numbers("axis_sizes", "I"), kinds, strict=True)]


def _spec(table: Table) -> dict[str, Any]:
    entries = [each.texts("axes") or None for each in table.tables("partitions", ("axes",))]
    return {"entries": entries, "reduced": table.texts("reduced"), "unreduced": table.texts("unreduced")}
