"""The file of an exported function: a header in JSON, the StableHLO, and the file of the derivative if there is one."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xlamini.core import LoadError, ShapedArray, float0
from xlamini.core.version import __version__
from xlamini.interpreters.physical import physical_aval
from xlamini.runtime.files.file_format import Header, Kind
from xlamini.staging.aot import aval_json, treedef_json
from xlamini.staging.aot.compiled_file import list_of
from xlamini.transforms.export.jax_file import JaxFile, is_of_jax
from xlamini.transforms.export.safety import DisabledSafetyCheck, check_kernels
from xlamini.transforms.export.shardings import read_shardings, typed, written
from xlamini.transforms.export.size_texts import check_determined, constraints_of, size_reader

if TYPE_CHECKING:
    from xlamini.transforms.export.artifact import Exported

CALLING_CONVENTION = 10
"""The version of the calling convention of `main`, which is JAX's convention."""
LEAST_CONVENTION = 9
"""The oldest calling convention that can be called."""

_FIELDS = {
    **{"name": str, "xlamini": str, "convention": int, "in_tree": object, "out_tree": object},
    **dict.fromkeys("in_avals out_avals names platforms checks kept sizes".split(), list),
}
_OF_MESHES = {"devices": int, **dict.fromkeys("meshes in_shardings out_shardings".split(), list)}
FILE = Kind("xlamini exported function", 1, _FIELDS, "a file of Exported.serialize()")
SHARDED_FILE = FILE._replace(version=2, fields={**_FIELDS, **_OF_MESHES})
"""A file with shardings has a format of its own, because readers of the first one would ignore them."""
SYMBOLIC_FILE = FILE._replace(version=3, fields={**_FIELDS, "constraints": list})
"""A file whose types have symbolic sizes, with the constraints on these."""
SYMBOLIC_SHARDED_FILE = FILE._replace(version=4, fields={**SYMBOLIC_FILE.fields, **_OF_MESHES})
"""A file with both."""


def kind_of(data: bytes) -> Kind | JaxFile:
    """The format of a file, by its beginning; the newest one of our own for other data."""
    if is_of_jax(data):
        return JaxFile()
    older = FILE, SHARDED_FILE, SYMBOLIC_FILE
    return next((kind for kind in older if data.startswith(kind.magic)), SYMBOLIC_SHARDED_FILE)


def packed(exported: Exported, vjp_order: int) -> bytes:
    """The file of an exported function, with derivatives of it up to this order."""
    parts = [exported.mlir_module_serialized]
    if exported._vouched:
        _summary(parts[0], trusted=True)  # so that this process may read its own files without a child
    if vjp_order:
        parts.append(packed(exported.vjp(), vjp_order - 1))
    header = {**header_of(exported, f"serialize: {exported.fun_name}"), "sizes": [len(part) for part in parts]}
    return _KINDS["constraints" in header, "meshes" in header].packed(header, b"".join(parts))


def header_of(exported: Exported, what: str) -> Header:
    """The header of a file but for the sizes of its parts; ValueError, beginning with `what`, for what none can say."""
    header = {
        "name": exported.fun_name,
        "xlamini": __version__,
        "convention": exported.calling_convention_version,
        "in_avals": aval_json.written(exported.in_avals),
        "out_avals": aval_json.written(exported.out_avals),
        "in_tree": treedef_json.written(exported.in_tree, f"{what}: the arguments"),
        "out_tree": treedef_json.written(exported.out_tree, f"{what}: the result"),
        "names": list(exported._names),
        "platforms": list(exported.platforms),
        "checks": [str(check) for check in exported.disabled_safety_checks],
        "kept": list(exported.module_kept_var_idx),
    }
    shardings = exported._in_named_shardings, exported._out_named_shardings
    constraints = constraints_of((*exported.in_avals, *exported.out_avals))
    of_sizes = {} if constraints is None else {"constraints": constraints}
    marks = {"passes_float0": True} if exported._passes_float0 else {}
    sharded = exported.nr_devices > 1 or any(map(any, shardings))
    of_meshes = {"devices": exported.nr_devices, **written(*shardings)} if sharded else {}
    return {**header, **marks, **of_sizes, **of_meshes}


_KINDS = {
    (False, False): FILE,
    (False, True): SHARDED_FILE,
    (True, False): SYMBOLIC_FILE,
    (True, True): SYMBOLIC_SHARDED_FILE,
}
"""By whether sizes are symbolic, and whether values are sharded."""


def fields_of(header: Header, parts: Sequence[bytes]) -> dict[str, Any]:
    """The fields of the Exported in a file, its derivative apart; LoadError, TypeError or ValueError for a bad header.
    """
    convention = header["convention"]
    if not LEAST_CONVENTION <= convention <= CALLING_CONVENTION:
        raise LoadError(
            f"deserialize: {header['name']} has calling convention {convention}, but here are {LEAST_CONVENTION} to "
            f"{CALLING_CONVENTION}; it was written by {header.get('by') or 'xlamini ' + header['xlamini']}"
        )
    size_of = size_reader(header["constraints"]) if "constraints" in header else aval_json.no_symbolic_size
    in_avals, out_avals = (aval_json.read(header[name], size_of) for name in ("in_avals", "out_avals"))
    ins, outs = read_shardings(header, in_avals, out_avals)
    return {
        "fun_name": header["name"],
        "in_tree": treedef_json.read(header["in_tree"]),
        "in_avals": typed(in_avals, ins),
        "out_tree": treedef_json.read(header["out_tree"]),
        "out_avals": typed(out_avals, outs),
        "platforms": tuple(list_of(str, header["platforms"])),
        "disabled_safety_checks": tuple(map(DisabledSafetyCheck, list_of(str, header["checks"]))),
        "mlir_module_serialized": parts[0],
        "module_kept_var_idx": tuple(list_of(int, header["kept"])),
        "calling_convention_version": convention,
        "nr_devices": header.get("devices", 1),
        "_in_named_shardings": ins,
        "_out_named_shardings": outs,
        "_names": tuple(list_of(str, header["names"])),
        "_passes_float0": header.get("passes_float0", False) is True,
    }


def check_header(read: Exported) -> None:
    """LoadError unless the header's structures, names and indices fit its types."""
    for tree, avals in ((read.in_tree, read.in_avals), (read.out_tree, read.out_avals)):
        if tree.num_leaves != len(avals):
            raise LoadError(f"deserialize: {tree} is not the structure of the {len(avals)} arrays of {read.fun_name}")
    kept, count = read.module_kept_var_idx, len(read.in_avals)
    if not read.platforms or len(read._names) != count or any(not 0 <= i < count for i in kept):
        raise LoadError(f"deserialize: the header of {read.fun_name} does not fit its {count} arguments")
    check_determined(read.in_avals, read.out_avals)


def passed_aval(aval: ShapedArray) -> ShapedArray:
    """The type of the array that stands for a value in a module: words for keys, truth values for dtype float0."""
    return aval.update(dtype=np.dtype(bool)) if aval.dtype == float0 else physical_aval(aval)


def _summary(artifact: bytes, trusted: bool) -> Any:
    # Imported here because MLIR's bindings cost 0.1 s.
    from xlamini.lowering.module_check import summary

    return summary(artifact, trusted)


def check_module(exported: Exported, trusted: bool) -> bool:
    """LoadError unless the module takes and returns what the header says, and calls only kernels that may be called.

    Returns whether somebody vouches for it. In a module with symbolic sizes calls are checked when these are known.
    """
    # Imported here because MLIR's bindings cost 0.1 s.
    from xlamini.lowering.module_check import type_text

    found = _summary(exported.mlir_module_serialized, trusted)
    index = ["tensor<i32>"] if exported.uses_global_constants else []
    arguments = [type_text(passed_aval(exported.in_avals[i])) for i in exported.module_kept_var_idx]
    results = [type_text(passed_aval(a)) for a in exported._returned(exported.out_avals)]
    if found.arguments != index + arguments or found.results != results:
        raise LoadError("the StableHLO has other argument or result types than the header says; serialize it again")
    if found.devices != exported.nr_devices:
        raise LoadError(f"the StableHLO is for {found.devices} devices, but the header says {exported.nr_devices}")
    try:
        check_kernels(exported.fun_name, found.kernels, exported.disabled_safety_checks if trusted else ())
    except ValueError:
        raise LoadError(
            f"it calls kernels without a stable interface, {', '.join(found.kernels)}; if you know who made the file, "
            "pass trusted=True"
        ) from None
    if not found.symbolic:
        check_calls(found.calls, trusted)
    return trusted or found.vouched


def check_calls(calls: Sequence[Any], trusted: bool) -> None:
    """LoadError for calls that would make a kernel write outside of its results."""
    if trusted or not calls:
        return
    # Imported here because MLIR's bindings cost 0.1 s.
    from xlamini.transforms.export.kernel_calls import refused

    if names := refused(calls):
        raise LoadError(
            f"it calls {names[0]} with types or attributes that xlamini {__version__} does not write for such "
            "operands; if you know who made the file, pass trusted=True, or export the function again"
        )
