"""Loading compiled functions that `Compiled.serialize` or `Compiled.save` wrote in another process.

Reading a file runs no code from it, as unpickling would. But calling the function runs the machine code in the file, so
load only files that you trust as you trust a Python module.
"""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from xlamini.core import Avals, LoadError, ShapedArray, Values, itemsize_bits
from xlamini.core.errors import JaxRuntimeError
from xlamini.runtime import Device, device_put_value
from xlamini.runtime.devices.platforms import local_devices
from xlamini.runtime.execution.executable import Executable, load_program
from xlamini.runtime.files.file_format import read_file
from xlamini.runtime.files.machine_match import matching_devices
from xlamini.runtime.meshes.program_placement import DeviceOrMesh, MeshPlacement, devices_of
from xlamini.runtime.sharding import on_device
from xlamini.staging.aot import placement_json
from xlamini.staging.aot.compiled_file import Content, any_keys, check_signature, computed, unpacked
from xlamini.staging.aot.stages import Compiled
from xlamini.staging.compile.program import Program
from xlamini.staging.trace.tracing import Trace, TracedCall


def load(source: str | os.PathLike[str] | bytes, device: Device | None = None) -> Compiled:
    """Load a compiled function from a file, or from the bytes of `Compiled.serialize`.

    It runs on `device`; without one, on the default device if the program was compiled for its kind, else on the first
    device of the right kind. Load only what you trust: it is machine code.

    Raises:
      LoadError: the file is damaged or of another format, or was made for another jaxlib, device or processor.
      OSError: the file does not exist or cannot be read.

    >>> compiled = xlamini.jit(lambda x: x * 2).lower(1.0).compile()
    >>> load(compiled.serialize())(21.0)
    Array(42., dtype=float32, weak_type=True)
    """
    what, data = _read(source)
    try:
        content = unpacked(data)
        if content.signature.in_tree is None:
            raise LoadError("the structures of its arguments are kept elsewhere; call deserialize_and_load with them")
        return _restored(content, device)
    except LoadError as error:
        raise LoadError(f"load: {what}: {error}") from None


def load_apart(
    data: bytes, in_tree: Any, out_tree: Any, backend: str | None, devices: Sequence[Device] | None
) -> Compiled:
    """Load bytes that were serialized without the tree structures, onto the first of these devices."""
    asked = devices[0] if devices else local_devices(backend=backend)[0] if backend else None
    try:
        content = unpacked(data)
        signature = content.signature._replace(in_tree=in_tree, out_tree=out_tree)
        check_signature(signature)
        return _restored(content._replace(signature=signature), asked)
    except LoadError as error:
        raise LoadError(f"deserialize_and_load: {error}") from None


def _read(source: Any) -> tuple[str, bytes]:
    if isinstance(source, bytes | bytearray | memoryview):
        return f"{len(source)} bytes", bytes(source)
    if isinstance(source, str | os.PathLike):
        return str(source), read_file(source)
    raise TypeError(
        f"load: the path of a file, or bytes of Compiled.serialize(), are needed, got a {type(source).__name__}"
    )


def _restored(content: Content, asked: Device | None) -> Compiled:
    try:
        found = content.program["place"]
        place = placement_json.read(found, matching_devices(content.home, placement_json.devices_needed(found), asked))
    except (KeyError, TypeError, AttributeError, IndexError, ValueError) as error:
        if isinstance(error, LoadError):
            raise
        raise LoadError(f"its header cannot be read: {error!r}") from None
    where = on_device(devices_of(place)[0])
    captured = [device_put_value(x, where, committed=False, aval=_aval(x)) for x in content.captured]
    on_mesh = isinstance(place, MeshPlacement)
    return Compiled(_traced_call(content, captured), _program(content, place), committed=on_mesh)


def _aval(x: Any) -> ShapedArray:
    return ShapedArray(x.shape, x.dtype)


class _Types(NamedTuple):
    """A stand-in for the jaxpr of a loaded program: its types."""

    in_avals: list[ShapedArray]
    out_avals: list[ShapedArray]

    @property
    def memo(self) -> NoReturn:
        """Raises, as a loaded program has no equations to memoise anything about."""
        raise ValueError("a program that was loaded has no equations any more; ask the function it was compiled from")


def _traced_call(content: Content, captured: Values) -> TracedCall:
    signature = content.signature
    jaxpr: Any = _Types([*map(_aval, captured), *signature.in_avals], signature.out_avals)
    trace = Trace(jaxpr, list(captured), signature.out_tree, signature.names)
    return TracedCall(trace, signature.in_tree, signature.name, signature.donated, signature.statics)


class _Lowered(NamedTuple):
    """A stand-in for the CompileRequest of a loaded program: the fields that Program reads."""

    name: str
    device: DeviceOrMesh
    used_inputs: Sequence[bool]
    computed: Sequence[bool]
    out_avals: Avals
    takes_keys: bool
    returns_keys: bool
    bytes_made: int = 2**62  # unknown, so XLA is asked how much memory the program needs
    spread: None = None  # a program of one process, so there is no other to compare it with
    source: None = None


def _program(content: Content, place: DeviceOrMesh) -> Program:
    of_code = content.program
    try:
        executable = load_program(
            content.code,
            place=place,
            in_avals=of_code["in_avals"],
            out_avals=of_code["out_avals"],
            donated=of_code["donated"],
            effectful=of_code.get("effectful", False),
        )
    except JaxRuntimeError as error:
        raise LoadError(f"jaxlib cannot load its machine code: {error}") from None
    _check_code(executable)
    signature, outs = content.signature, content.signature.out_avals
    keys = any_keys(signature.in_avals), any_keys(outs)
    lowered: Any = _Lowered(signature.name, place, of_code["kept"], computed(outs), outs, *keys)
    return Program(lowered, executable)


def _check_code(executable: Executable) -> None:
    """LoadError if the machine code takes or returns other arrays than the header says."""
    if executable.several:
        return  # each device has a part of them
    needed, loaded = executable.memory_analysis(), executable.loaded
    ins, outs = executable.in_avals, executable.out_avals
    counts = len(loaded.get_parameter_layouts()) == len(ins) and len(loaded.get_output_layouts()) == len(outs)
    if not counts or needed.argument_size_in_bytes < _bytes_of(ins) or needed.output_size_in_bytes < _bytes_of(outs):
        raise LoadError("its machine code takes or returns other arrays than its header says; save it again")


def _bytes_of(avals: Avals) -> int:
    """The least bytes that arrays of these types take, of which one of 4 bits takes half a byte."""
    return sum(aval.size * itemsize_bits(aval.dtype) // 8 for aval in avals)
