"""The files that JAX's `deserialize` reads: the header of our own files as FlatBuffers, the reverse of `jax_file`."""
from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

from xlamini.core import float0
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.runtime.files.file_format import Header
from xlamini.runtime.files.flatbuffer_writer import Number, Numbers, Part, Parts, packed
from xlamini.transforms.export import jax_schema as schema
from xlamini.transforms.export.artifact import Exported
from xlamini.transforms.export.exported_file import header_of

_SERIALIZATION = 3
"""The version of the format that JAX writes into each file, whatever the format is."""
_MOST = 2**16


@api_boundary
def serialize_for_jax(exported: Exported, vjp_order: int = 0) -> bytearray:
    """The function as bytes for `jax.export.deserialize`, with derivatives up to the order `vjp_order`.

    JAX has no place for the constraints on symbolic sizes, which the module checks, and none for weak types. Classes of
    containers must be registered there under the same names, and read the same bytes of metadata.

    ValueError for results of dtype float0, which modules here leave out (such as the derivative by whole numbers), for
    keys of dicts that are no strings, and as of `Exported.serialize`.

    >>> exported = xlamini.export.export(xlamini.jit(lambda x: x * 2))(jnp.ones(2))
    >>> xlamini.export.deserialize(serialize_for_jax(exported)).call(jnp.arange(2.0))
    Array([0., 2.], dtype=float32)
    """
    if not isinstance(exported, Exported):
        raise TypeError(f"serialize_for_jax: an Exported is needed, got a {type(exported).__name__}")
    if not isinstance(vjp_order, int) or vjp_order < 0:
        raise ValueError(f"serialize_for_jax: vjp_order must be a number such as 0 or 1, got {vjp_order!r}")
    return bytearray(packed(_exported(exported, vjp_order)))


def _exported(exported: Exported, vjp_order: int) -> Parts:
    what = f"serialize_for_jax: {exported.fun_name}"
    if not exported._passes_float0 and any(a.dtype == float0 for a in exported.out_avals):
        raise ValueError(
            f"{what} has results of dtype float0, which its module leaves out, and JAX's has; leave them out of the "
            "function, or if they are derivatives, pass whole numbers as constants, or vjp_order=0"
        )
    header = header_of(exported, what)
    parts = {**_fields(header, what), "mlir_module_serialized": exported.mlir_module_serialized}
    derivative = {"vjp": _exported(exported.vjp(), vjp_order - 1)} if vjp_order else {}
    return Parts(schema.EXPORTED, {**parts, **derivative})


def _fields(header: Header, what: str) -> dict[str, Part]:
    if len(header["in_avals"]) >= _MOST:
        raise ValueError(f"{what} has {len(header['in_avals'])} arguments; JAX's format has up to {_MOST - 1}")
    return {
        "serialization_version": Number("H", _SERIALIZATION),
        "function_name": header["name"],
        "in_tree": _tree(header["in_tree"], what),
        "out_tree": _tree(header["out_tree"], what),
        "platforms": header["platforms"],
        "ordered_effects": [],
        "unordered_effects": [],
        "disabled_checks": list(map(_check, header["checks"])),
        "calling_convention_version": Number("H", header["convention"]),
        "module_kept_var_idx": Numbers("H", header["kept"]),
        "uses_global_constants": Number("b", len(header["platforms"]) > 1 or "constraints" in header),
        "nr_devices": Number("I", header.get("devices", 1)),
        **_avals(header),
        **_shardings(header),
    }


# --- structures


def _tree(tree: Any, what: str) -> Parts:
    """A structure that `treedef_json` has as JSON."""
    if tree == "*" or tree is None:
        return _node(schema.LEAF if tree else schema.NONE, [], what)
    [(kind, inside)] = tree.items()
    if kind in ("tuple", "list"):
        return _node(schema.TUPLE if kind == "tuple" else schema.LIST, inside, what)
    if kind == "node":
        name, data, children = inside
        return _node(schema.CUSTOM, children, what, custom_name=name, custom_auxdata=base64.b64decode(data))
    keys, children = [key for key, _ in inside], [child for _, child in inside]
    if not all(type(key) is str for key in keys):
        raise ValueError(f"{what}: JAX writes dicts with strings as keys, not {keys!r:.60}; make the keys strings")
    if kind == "dict":
        return _node(schema.DICT, children, what, children_names=keys)
    data = json.dumps(keys).encode()
    return _node(schema.CUSTOM, children, what, custom_name=schema.ORDERED_DICT, custom_auxdata=data)


def _node(kind: int, children: Sequence[Any], what: str, **more: Part) -> Parts:
    inside = {"children": [_tree(child, what) for child in children]} if children else {}
    return Parts(schema.TREE, {"kind": Number("b", kind), **inside, **more})


# --- types and shardings: numbers in lists without repetitions, and in full for versions of JAX before these lists


def _avals(header: Header) -> dict[str, Part]:
    sides = {name: list(map(_aval, header[name])) for name in ("in_avals", "out_avals")}
    every = [aval for avals in sides.values() for aval in avals]
    starts = {"in_avals": 0, "out_avals": len(sides["in_avals"])}
    numbers = {f"{name}_idxs": Numbers("I", [i + starts[name] for i in range(len(sides[name]))]) for name in sides}
    return {**sides, "unique_avals": every, **numbers}


def _aval(aval: list[Any]) -> Parts:
    dtype, sizes, _, *space = aval
    if dtype not in schema.DTYPES:
        raise ValueError(f"serialize_for_jax: JAX's format has no arrays of dtype {dtype}")
    values: dict[str, Part] = {
        "kind": Number("b", 0),
        "shape": list(map(str, sizes)),
        "dtype": Number("b", schema.DTYPES.index(dtype)),
        "memory_space": Number("b", schema.SPACES.index(space[0]) if space else 1),
    }
    return Parts(schema.AVAL, values)


def _check(check: str) -> Parts:
    kind, _, target = check.partition(":")
    named: dict[str, Part] = {"custom_call_target": target} if kind == "custom_call" else {}
    return Parts(schema.CHECK, {"kind": Number("b", int(bool(named))), **named})


def _shardings(header: Header) -> dict[str, Part]:
    meshes = list(map(_mesh, header.get("meshes", [])))
    sides = {name: _side(header, name, meshes) for name in ("in_shardings", "out_shardings")}
    unique = [named for side in sides.values() for named in side if named is not None]
    numbers = {f"{name}_idxs": Numbers("I", [_number(unique, named) for named in side]) for name, side in sides.items()}
    full = {name: list(map(_sharding, side)) for name, side in sides.items()}
    return {**full, "unique_abstract_meshes": meshes, "unique_named_shardings": unique, **numbers}


def _number(unique: Sequence[Parts], named: Parts | None) -> int:
    return 0 if named is None else 1 + next(i for i, each in enumerate(unique) if each is named)


def _side(header: Header, name: str, meshes: Sequence[Parts]) -> list[Parts | None]:
    given = header.get(name, [None] * len(header[name.replace("shardings", "avals")]))
    return [sharding and _named(sharding[0], sharding[1], meshes) for sharding in given]


def _sharding(named: Parts | None) -> Parts:
    return Parts(schema.SHARDING, {} if named is None else {"named_sharding": named})


def _named(number: int, spec: Any, meshes: Sequence[Parts]) -> Parts:
    values = {"mesh": meshes[number], "spec": _spec(spec), "abstract_mesh_idx": Number("I", number)}
    return Parts(schema.NAMED_SHARDING, values)


def _mesh(axes: Sequence[Any]) -> Parts:
    names, sizes, kinds = ([axis[i] for axis in axes] for i in range(3))
    numbers = Numbers("b", list(map(schema.AXIS_TYPES.index, kinds)))
    return Parts(schema.MESH, {"axis_sizes": Numbers("I", sizes), "axis_names": names, "axis_types": numbers})


def _spec(spec: Any) -> Parts:
    known = spec if isinstance(spec, dict) else {"entries": spec, "reduced": [], "unreduced": []}
    if True in known["entries"]:
        raise ValueError("serialize_for_jax: JAX's format has no sharding with dimensions that are unconstrained")
    entries = [[] if entry is None else [entry] if isinstance(entry, str) else entry for entry in known["entries"]]
    partitions = [Parts(schema.AXES, {"axes": names}) for names in entries]
    return Parts(schema.SPEC, {"partitions": partitions, **{k: known[k] for k in ("reduced", "unreduced")}})
