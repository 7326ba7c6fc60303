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
from xlamini.runtime.files.flatbuffer import FlatTable, first_table, rooted_at
from xlamini.staging.aot import treedef_json
from xlamini.transforms.export import jax_schema as schema
from xlamini.transforms.export.size_texts import promises

T = TypeVar("T")


class JaxFile:
    """The kind of files that JAX writes, with the `read` of a Kind."""

    def read(self, data: bytes, build: Callable[[Header, list[bytes]], T], again: str, begin: str = "") -> T:
        """Parse a file, as `Kind.read`: the parts are the StableHLO, and a file of the derivative if there is one."""
        return parsed(lambda: build(*_unpacked(data)), again, begin)


def is_of_jax(data: bytes) -> bool:
    """Whether bytes begin as a file of JAX: with the place of a table inside of them."""
    try:
        return first_table(data[: len(data) // 4 * 4], schema.EXPORTED).has("mlir_module_serialized")
    except Damaged:
        return False


def _unpacked(data: bytes) -> tuple[Header, list[bytes]]:
    table = first_table(data, schema.EXPORTED)
    if any(table.tables(name, schema.EFFECT) for name in ("ordered_effects", "unordered_effects")):
        raise ValueError("it has side effects, which exported functions have not here")
    derivative = table.table("vjp", schema.EXPORTED)
    parts = [table.data("mlir_module_serialized")]
    return _header(table), parts if derivative is None else [*parts, rooted_at(data, derivative)]


def _header(table: FlatTable) -> Header:
    in_tree = _tree(_needed(table.table("in_tree", schema.TREE)))
    avals = _avals(table)
    return {
        "name": table.text("function_name"),
        "by": "JAX",
        "convention": table.number("calling_convention_version", "H"),
        "in_tree": in_tree,
        "out_tree": _tree(_needed(table.table("out_tree", schema.TREE))),
        **avals,
        "constraints": promises(size for each in avals.values() for _, sizes, _, _ in each for size in sizes),
        "names": _names(in_tree),
        "platforms": table.texts("platforms"),
        "checks": [_check(each) for each in table.tables("disabled_checks", schema.CHECK)],
        "kept": table.numbers("module_kept_var_idx", "H"),
        "passes_float0": True,
        **_shardings(table),
    }


def _needed(table: FlatTable | None) -> FlatTable:
    if table is None:
        raise Damaged("has a part less than a file of JAX")
    return table


def _names(in_tree: Any) -> list[str]:
    """The names of the arguments as JAX has them in its errors, such as `args[0]['w']`."""
    paths, _ = tree_flatten_with_path(example_of(treedef_json.read(in_tree)))
    return [f"{('args', 'kwargs')[path[0].idx]}{keystr(path[1:])}" for path, _ in paths]


# --- structures


def _tree(table: FlatTable) -> Any:
    """A structure as `treedef_json` has it."""
    kind, children = table.number("kind", "b"), [_tree(child) for child in table.tables("children", schema.TREE)]
    if kind in (schema.LEAF, schema.NONE):
        return "*" if kind == schema.LEAF else None
    if kind in (schema.TUPLE, schema.LIST):
        return {"tuple" if kind == schema.TUPLE else "list": children}
    if kind == schema.DICT:
        return {"dict": list(zip(table.texts("children_names"), children, strict=True))}
    if kind == schema.CUSTOM:
        return _node(table.text("custom_name"), table.data("custom_auxdata"), children)
    raise ValueError(f"it has containers of the kind {kind}, which is unknown here")


def _node(name: str, data: bytes, children: Sequence[Any]) -> Any:
    if name == schema.ORDERED_DICT:
        return {"OrderedDict": list(zip(json.loads(data), children, strict=True))}
    return {"node": [name, base64.b64encode(data).decode(), children]}


# --- types


def _avals(table: FlatTable) -> dict[str, list[Any]]:
    """The types as `aval_json` has them: numbers of a list without repetitions, or in older files the types."""
    unique = [_aval(each) for each in table.tables("unique_avals", schema.AVAL)]
    return {name: _chosen(table, name, unique) for name in ("in_avals", "out_avals")}


def _chosen(table: FlatTable, name: str, unique: Sequence[Any]) -> list[Any]:
    if numbers := table.numbers(f"{name}_idxs", "I"):
        return [unique[i] for i in numbers]
    return [_aval(each) for each in table.tables(name, schema.AVAL)]


def _aval(table: FlatTable) -> list[Any]:
    if table.number("kind", "b"):
        raise ValueError("it has arguments or results that are no arrays")
    dtype, space = table.number("dtype", "b"), table.number("memory_space", "b")
    if not 0 <= dtype < len(schema.DTYPES) or not 0 <= space < len(schema.SPACES):
        raise ValueError(f"it has arrays of the dtype {dtype} in the memory {space}, which are unknown here")
    return [schema.DTYPES[dtype], [_size(text) for text in table.texts("shape")], False, schema.SPACES[space]]


def _size(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdecimal() else text


def _check(table: FlatTable) -> str:
    kind = table.number("kind", "b")
    if kind not in (0, 1):
        raise ValueError(f"it was exported without a safety check of the kind {kind}, which is unknown here")
    return f"custom_call:{table.text('custom_call_target')}" if kind else "platform"


# --- shardings


def _shardings(table: FlatTable) -> Header:
    """The fields of a header for devices and shardings."""
    meshes = [_mesh(each) for each in table.tables("unique_abstract_meshes", schema.MESH)]
    named = table.tables("unique_named_shardings", schema.NAMED_SHARDING)
    unique = [None, *([each.number("abstract_mesh_idx", "I"), _spec(each)] for each in named)]
    devices = table.number("nr_devices", "I") or table.number("nr_devices_short", "h")
    sides = {name: _side(table, name, unique, meshes, devices) for name in ("in_shardings", "out_shardings")}
    return {"devices": devices, "meshes": meshes, **sides}


def _side(table: FlatTable, name: str, unique: Sequence[Any], meshes: list[Any], devices: int) -> list[Any]:
    if numbers := table.numbers(f"{name}_idxs", "I"):
        return [unique[i] for i in numbers]
    return [_sharding(each, meshes, devices) for each in table.tables(name, schema.SHARDING)]


def _sharding(table: FlatTable, meshes: list[Any], devices: int) -> Any:
    """A sharding of an older file, whose mesh joins the others; one of XLA's says nothing if there is one device."""
    named = table.table("named_sharding", schema.NAMED_SHARDING)
    if named is not None:
        meshes.append(_mesh(_needed(named.table("mesh", schema.MESH))))
        return [len(meshes) - 1, _spec(named)]
    if table.has("hlo_sharding_proto") and devices > 1:
        raise ValueError("it has shardings without meshes, as JAX wrote them before 2026; export it with a later JAX")
    return None


def _mesh(table: FlatTable) -> list[Any]:
    kinds = [dict(enumerate(schema.AXIS_TYPES))[kind] for kind in table.numbers("axis_types", "b")]
    return [list(axis) for axis in zip(table.texts("axis_names"), table.numbers("axis_sizes", "I"), kinds, strict=True)]


def _spec(named: FlatTable) -> dict[str, Any]:
    table = _needed(named.table("spec", schema.SPEC))
    entries = [each.texts("axes") or None for each in table.tables("partitions", schema.AXES)]
    return {"entries": entries, "reduced": table.texts("reduced"), "unreduced": table.texts("unreduced")}
