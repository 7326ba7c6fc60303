"""A compiled function as a file: a header that says what it is and where it can run, machine code, captured arrays.

The header is JSON: `signature` is what callers see, `program` what the machine code takes and returns.
"""
from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from xlamini.core.avals import ShapedArray
from xlamini.core.dtypes import float0
from xlamini.interpreters.physical import is_extended
from xlamini.runtime.executable import CompiledModule
from xlamini.runtime.files.file_format import Header, Kind
from xlamini.runtime.files.machine_match import Requirements, requirements_of
from xlamini.runtime.meshes.program_placement import devices_of
from xlamini.staging.aot import placements, trees, types
from xlamini.staging.aot.captured_arrays import ndarrays

if TYPE_CHECKING:
    from xlamini.staging.aot.stages import Known
    from xlamini.staging.compile.program import Program

_FIELDS = frozenset({"name", "made", "home", "signature", "program", "captured", "sizes"})
FILE = Kind("xlamini compiled function", 1, _FIELDS, "a file of Compiled.serialize()")


class Signature(NamedTuple):
    """What callers see: the types and structures of arguments and results; trees are None where others keep them."""

    name: str
    in_avals: list[ShapedArray]
    out_avals: list[ShapedArray]
    in_tree: Any
    out_tree: Any
    names: Sequence[str]
    donated: Sequence[bool]
    statics: Sequence[str]


class Content(NamedTuple):
    """A file taken apart."""

    home: Requirements
    signature: Signature
    code: bytes
    captured: list[np.ndarray]
    program: dict[str, Any]
    """`in_avals`, `out_avals`, `donated` of the machine code; which inputs it takes, `kept`; its `place`."""


def packed(known: Known, program: Program, captured: Sequence[Any], with_trees: bool) -> bytes:
    """The file of a compiled function; without trees, where somebody else keeps its structures.

    Raises:
      ValueError: it calls Python functions, or has containers of a class that is not registered to be written.
    """
    _check(known.name, program.executable)
    code, arrays = program.executable.serialize(), ndarrays(captured)
    parts = [code, *[x.tobytes() for x in arrays]]
    header = {
        "name": known.name,
        "made": time.time(),
        "home": requirements_of(devices_of(program.device)[0])._asdict(),
        "signature": _written_signature(known, with_trees),
        "program": _written_program(program),
        "captured": types.written([ShapedArray(x.shape, x.dtype) for x in arrays]),
        "sizes": [len(part) for part in parts],
    }
    return FILE.packed(header, b"".join(parts))


def _check(name: str, executable: CompiledModule) -> None:
    if executable.calls_python:
        raise ValueError(
            f"serialize: {name} calls Python functions (debug.print, pure_callback, ...), which another process has "
            "not; take them out"
        )


def _written_signature(known: Known, with_trees: bool) -> dict[str, Any]:
    what = f"serialize: {known.name}"
    return {
        "in_avals": types.written(known.avals),
        "out_avals": types.written(known.trace.jaxpr.out_avals),
        "in_tree": trees.written(known.in_tree, f"{what}: the arguments") if with_trees else False,
        "out_tree": trees.written(known.trace.out_tree, f"{what}: the result") if with_trees else False,
        "names": list(known.trace.names),
        "donated": list(known.donated),
        "statics": list(known.statics),
    }


def _written_program(program: Program) -> dict[str, Any]:
    executable = program.executable
    return {
        "in_avals": types.written(executable.in_avals),
        "out_avals": types.written(executable.out_avals),
        "donated": sorted(executable.donated),
        "place": placements.written(program.device, executable.in_shardings, executable.out_shardings),
        "kept": list(program.kept),
    }


def unpacked(data: bytes) -> Content:
    """A file taken apart; LoadError for one that is damaged, or none of ours."""
    return FILE.read(data, _content, "save it again")


def _content(header: Header, parts: Sequence[bytes]) -> Content:
    signature, program, avals = header["signature"], header["program"], types.read(header["captured"])
    captured = [np.frombuffer(x, a.dtype).reshape(a.shape) for x, a in zip(parts[1:], avals, strict=True)]
    return Content(
        Requirements(**header["home"]),
        Signature(
            name=header["name"],
            in_avals=types.read(signature["in_avals"]),
            out_avals=types.read(signature["out_avals"]),
            in_tree=trees.read_optional(signature["in_tree"]),
            out_tree=trees.read_optional(signature["out_tree"]),
            **{name: signature[name] for name in ("names", "donated", "statics")},
        ),
        parts[0],
        captured,
        {**program, **{name: types.read(program[name]) for name in ("in_avals", "out_avals")}},
    )


def computed(avals: Sequence[ShapedArray]) -> tuple[bool, ...]:
    """Which results the machine code computes: those of dtype float0 have no elements."""
    return tuple(a.dtype != float0 for a in avals)


def any_keys(avals: Sequence[ShapedArray]) -> bool:
    """Whether random keys are among the results."""
    return any(map(is_extended, avals))
