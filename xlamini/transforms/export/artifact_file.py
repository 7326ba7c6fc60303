"""An exported function as a file: a header in JSON, the StableHLO, and the file of its derivative if there is one."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core.api_boundary import edge
from xlamini.core.errors import LoadError
from xlamini.core.version import __version__
from xlamini.runtime.files.file_format import Header, Kind
from xlamini.staging.aot import trees, types
from xlamini.transforms.export.artifact import CALLING_CONVENTION, Exported
from xlamini.transforms.export.safety import DisabledSafetyCheck

LEAST_CONVENTION = 9
minimum_supported_calling_convention_version = LEAST_CONVENTION
maximum_supported_calling_convention_version = CALLING_CONVENTION
"""The oldest calling convention that can be called."""

_FIELDS = "name xlamini convention in_avals out_avals in_tree out_tree names platforms checks kept sizes"
FILE = Kind("xlamini exported function", 1, frozenset(_FIELDS.split()), "a file of Exported.serialize()")


def packed(exported: Exported, vjp_order: int) -> bytes:
    """The file of an exported function, with derivatives of it up to this order."""
    what = f"serialize: {exported.fun_name}"
    parts = [exported.mlir_module_serialized]
    if vjp_order:
        parts.append(packed(exported.vjp(), vjp_order - 1))
    header = {
        "name": exported.fun_name,
        "xlamini": __version__,
        "convention": exported.calling_convention_version,
        "in_avals": types.written(exported.in_avals),
        "out_avals": types.written(exported.out_avals),
        "in_tree": trees.written(exported.in_tree, f"{what}: the arguments"),
        "out_tree": trees.written(exported.out_tree, f"{what}: the result"),
        "names": list(exported._names),
        "platforms": list(exported.platforms),
        "checks": [str(check) for check in exported.disabled_safety_checks],
        "kept": list(exported.module_kept_var_idx),
        "sizes": [len(part) for part in parts],
    }
    return FILE.packed(header, b"".join(parts))


@edge
def deserialize(blob: bytes | bytearray) -> Exported:
    """The exported function that `Exported.serialize` wrote.

    LoadError for bytes that are damaged, are something else, or come from a version that is too new to be read; and for
    containers of a class that is not registered here under the name it had.

    >>> blob = xlamini.export.export(xlamini.jit(lambda x: x * 2))(1.0).serialize()
    >>> deserialize(blob).call(21.0)
    Array(42., dtype=float32, weak_type=True)
    """
    if not isinstance(blob, bytes | bytearray | memoryview):
        raise TypeError(f"deserialize: bytes of Exported.serialize() are needed, got a {type(blob).__name__}")
    return FILE.read(bytes(blob), _exported, "serialize it again", "deserialize: ")


def _exported(header: Header, parts: Sequence[bytes]) -> Exported:
    convention = header["convention"]
    if not LEAST_CONVENTION <= convention <= CALLING_CONVENTION:
        raise LoadError(
            f"deserialize: {header['name']} has calling convention {convention}, but here are {LEAST_CONVENTION} to "
            f"{CALLING_CONVENTION}; it was written by xlamini {header['xlamini']}"
        )
    return Exported(
        fun_name=header["name"],
        in_tree=trees.read(header["in_tree"]),
        in_avals=tuple(types.read(header["in_avals"])),
        out_tree=trees.read(header["out_tree"]),
        out_avals=tuple(types.read(header["out_avals"])),
        platforms=tuple(header["platforms"]),
        disabled_safety_checks=tuple(map(DisabledSafetyCheck, header["checks"])),
        mlir_module_serialized=parts[0],
        module_kept_var_idx=tuple(header["kept"]),
        calling_convention_version=convention,
        _names=tuple(header["names"]),
        _get_vjp=_reader(parts[1]) if len(parts) > 1 else None,
    )


def _reader(blob: bytes) -> Any:
    return lambda _: deserialize(blob)
