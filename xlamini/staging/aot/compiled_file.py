"""The file format of a compiled function: a JSON header, machine code, and captured arrays.

In the header, `signature` describes the function as callers see it, `program` the machine code's inputs and outputs.
"""
from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Avals, LoadError, ShapedArray, Values, float0
from xlamini.interpreters.physical import is_extended, physical_aval
from xlamini.runtime.execution.executable import CompiledModule
from xlamini.runtime.files.file_format import Header, Kind
from xlamini.runtime.files.machine_match import Requirements, requirements_of
from xlamini.runtime.meshes.program_placement import devices_of
from xlamini.staging.aot import aval_json, placement_json, treedef_json
from xlamini.staging.aot.captured_arrays import ndarrays
from xlamini.staging.compile.program import Program
from xlamini.staging.trace.hi_arguments import has_arrays_of
from xlamini.staging.trace.tracing import TracedCall

_FIELDS = {
    **{"name": str, "made": (int, float), "home": dict},
    **{"signature": dict, "program": dict, "captured": list, "sizes": list},
}
FILE = Kind("xlamini compiled function", 1, _FIELDS, "a file of Compiled.serialize()")


class CallSignature(NamedTuple):
    """The function as callers see it: types and structures of arguments and results; trees are None if not written."""

    name: str
    in_avals: list[ShapedArray]
    out_avals: list[ShapedArray]
    in_tree: Any
    out_tree: Any
    names: Sequence[str]
    donated: Sequence[bool]
    statics: Sequence[str]


class Content(NamedTuple):
    """The parts of a file."""

    home: Requirements
    signature: CallSignature
    code: bytes
    captured: list[np.ndarray]
    program: dict[str, Any]
    """Of the machine code: `in_avals`, `out_avals`, `donated`, the mask `kept` of used inputs, and its `place`."""


def packed(call: TracedCall, program: Program, captured: Values, with_trees: bool) -> bytes:
    """The file of a compiled function; without trees, if the caller stores the structures.

    Raises:
      ValueError: it calls Python functions, or has containers of a class that is not registered to be written.
    """
    _check(call, program.executable)
    code, arrays = program.executable.serialize(), ndarrays(captured)
    parts = [code, *[x.tobytes() for x in arrays]]
    header = {
        "name": call.name,
        "made": time.time(),
        "home": requirements_of(devices_of(program.device)[0])._asdict(),
        "signature": _written_signature(call, with_trees),
        "program": _written_program(program),
        "captured": aval_json.written([ShapedArray(x.shape, x.dtype) for x in arrays]),
        "sizes": [len(part) for part in parts],
    }
    return FILE.packed(header, b"".join(parts))


def _check(call: TracedCall, executable: CompiledModule) -> None:
    if has_arrays_of(call.in_tree) or has_arrays_of(call.trace.out_tree):
        raise ValueError(
            f"serialize: {call.name} takes or returns values of a user's type, which another process may not have; "
            "serialize a function of arrays that makes the values inside"
        )
    if executable.calls_python:
        raise ValueError(
            f"serialize: {call.name} calls Python functions (debug.print, pure_callback, ...), which another process "
            "has not; take them out"
        )


def _written_signature(call: TracedCall, with_trees: bool) -> dict[str, Any]:
    what = f"serialize: {call.name}"
    return {
        "in_avals": aval_json.written(call.avals),
        "out_avals": aval_json.written(call.trace.jaxpr.out_avals),
        "in_tree": treedef_json.written(call.in_tree, f"{what}: the arguments") if with_trees else False,
        "out_tree": treedef_json.written(call.trace.out_tree, f"{what}: the result") if with_trees else False,
        "names": list(call.trace.names),
        "donated": list(call.donated),
        "statics": list(call.statics),
    }


def _written_program(program: Program) -> dict[str, Any]:
    executable = program.executable
    return {
        "in_avals": aval_json.written(executable.in_avals),
        "out_avals": aval_json.written(executable.out_avals),
        "donated": sorted(executable.donated),
        "place": placement_json.written(program.device, executable.in_shardings, executable.out_shardings),
        "kept": list(program.used_inputs),
        "effectful": executable.effectful,
    }


def unpacked(data: bytes) -> Content:
    """Parse a file; LoadError if it is damaged or of another format."""
    return FILE.read(data, _content, "save it again")


def _content(header: Header, parts: Sequence[bytes]) -> Content:
    written, program, avals = header["signature"], header["program"], aval_json.read(header["captured"])
    captured = [np.frombuffer(x, a.dtype).reshape(a.shape) for x, a in zip(parts[1:], avals, strict=True)]
    signature = CallSignature(
        name=header["name"],
        in_avals=aval_json.read(written["in_avals"]),
        out_avals=aval_json.read(written["out_avals"]),
        in_tree=treedef_json.read_optional(written["in_tree"]),
        out_tree=treedef_json.read_optional(written["out_tree"]),
        names=list_of(str, written["names"]),
        donated=list_of(bool, written["donated"]),
        statics=list_of(str, written["statics"]),
    )
    program = {**program, **{name: aval_json.read(program[name]) for name in ("in_avals", "out_avals")}}
    check_signature(signature)
    _check_program(signature, program, avals)
    return Content(Requirements(**header["home"]), signature, parts[0], captured, program)


def check_signature(signature: CallSignature) -> None:
    """LoadError unless the structures, names and donations are as many as the types."""
    for tree, avals in ((signature.in_tree, signature.in_avals), (signature.out_tree, signature.out_avals)):
        if tree is not None and tree.num_leaves != len(avals):
            raise LoadError(f"{tree} is not the structure of the {len(avals)} arrays of {signature.name}")
    if not len(signature.names) == len(signature.donated) == len(signature.in_avals):
        raise LoadError(f"its header has not as many names and donations as {signature.name} has arguments")


def _check_program(signature: CallSignature, program: dict[str, Any], captured: Avals) -> None:
    """LoadError unless the description of the machine code fits the signature."""
    kept, donated = list_of(bool, program["kept"]), list_of(int, program["donated"])
    inputs, outs = [*captured, *signature.in_avals], [a for a in signature.out_avals if a.dtype != float0]
    fits = (
        len(kept) == len(inputs)
        and _types(program["in_avals"]) == _types(a for a, is_kept in zip(inputs, kept, strict=True) if is_kept)
        and all(0 <= i < len(program["in_avals"]) for i in donated)
        and program["out_avals"] == [physical_aval(a) for a in outs]
    )
    if not fits:
        raise LoadError(f"its header describes another program than {signature.name}")


def _types(avals: Iterable[ShapedArray]) -> list[tuple[Any, ...]]:
    return [(a.shape, a.dtype) for a in map(physical_aval, avals)]


def list_of(kind: type, values: Any) -> list[Any]:
    """The values; TypeError unless they are a list of this type."""
    if not isinstance(values, list) or any(type(x) is not kind for x in values):
        raise TypeError(f"a list of {kind.__name__} is needed, not {str(values)[:40]}")
    return values


def computed(avals: Avals) -> tuple[bool, ...]:
    """For each result, whether the machine code computes it: one of dtype float0 has no elements."""
    return tuple(a.dtype != float0 for a in avals)


def any_keys(avals: Avals) -> bool:
    """Whether random keys are among these types."""
    return any(map(is_extended, avals))
