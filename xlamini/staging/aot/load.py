"""Compiled functions from files: what `Compiled.serialize` and `Compiled.save` wrote runs in another process.

A file is never run to be read, as a pickle would be; but the machine code in it runs as it stands once the function is
called. So load files only from where you would load a Python module from.
"""
from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple, NoReturn

from xlamini.core.avals import ShapedArray
from xlamini.core.errors import JaxRuntimeError, LoadError
from xlamini.runtime.devices.platforms import Device, local_devices
from xlamini.runtime.executable import load_program
from xlamini.runtime.files.file_format import read_file
from xlamini.runtime.files.machine_match import matching_devices
from xlamini.runtime.meshes.program_placement import Place, devices_of
from xlamini.runtime.sharding import on_device
from xlamini.runtime.to_device import device_put_value
from xlamini.staging.aot import placements
from xlamini.staging.aot.compiled_file import Content, Signature, any_keys, computed, unpacked
from xlamini.staging.aot.stages import Compiled, Known
from xlamini.staging.compile.program import Program
from xlamini.staging.trace.tracing import Trace


def load(source: str | os.PathLike[str] | bytes, device: Device | None = None) -> Compiled:
    """The compiled function in a file, or in the bytes that `Compiled.serialize` gave.

    It runs on `device`, by default on the default device if the program is for such a one, else on the first that is
    like the one it was compiled for. Only load what you trust: it is machine code.

    Raises:
      LoadError: the file is damaged or something else, or was made for another jaxlib, device or processor.
      OSError: there is no such file, or it cannot be read.

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
    """The same for bytes without the structures, on the first of these devices."""
    asked = devices[0] if devices else local_devices(backend=backend)[0] if backend else None
    try:
        content = unpacked(data)
        signature = content.signature._replace(in_tree=in_tree, out_tree=out_tree)
        _check_structures(signature)
        return _restored(content._replace(signature=signature), asked)
    except LoadError as error:
        raise LoadError(f"deserialize_and_load: {error}") from None


def _check_structures(signature: Signature) -> None:
    for tree, avals in ((signature.in_tree, signature.in_avals), (signature.out_tree, signature.out_avals)):
        if tree.num_leaves != len(avals):
            raise LoadError(f"{tree} is not the structure of the {len(avals)} arrays of {signature.name}")


def _read(source: Any) -> tuple[str, bytes]:
    if isinstance(source, bytes | bytearray | memoryview):
        return f"{len(source)} bytes", bytes(source)
    if isinstance(source, str | os.PathLike):
        return str(source), read_file(source)
    raise TypeError(
        f"load: the path of a file, or bytes of Compiled.serialize(), are needed, got a {type(source).__name__}"
    )


def _restored(content: Content, asked: Device | None) -> Compiled:
    found = content.program["place"]
    place = placements.read(found, matching_devices(content.home, placements.devices_needed(found), asked))
    where = on_device(devices_of(place)[0])
    captured = [device_put_value(x, where, committed=False, aval=_aval(x)) for x in content.captured]
    return Compiled(_known(content, captured), _program(content, place))


def _aval(x: Any) -> ShapedArray:
    return ShapedArray(x.shape, x.dtype)


class _Types(NamedTuple):
    """What the stages ask a jaxpr for, where there is none any more."""

    in_avals: list[ShapedArray]
    out_avals: list[ShapedArray]

    @property
    def memo(self) -> NoReturn:
        """Where things are remembered of equations."""
        raise ValueError("a program that was loaded has no equations any more; ask the function it was compiled from")


def _known(content: Content, captured: Sequence[Any]) -> Known:
    signature = content.signature
    jaxpr: Any = _Types([*map(_aval, captured), *signature.in_avals], signature.out_avals)
    trace = Trace(jaxpr, list(captured), signature.out_tree, signature.names)
    return Known(trace, signature.in_tree, signature.name, signature.donated, signature.statics)


class _Lowered(NamedTuple):
    """What a program keeps of what it was lowered from."""

    name: str
    device: Place
    kept: Sequence[bool]
    computed: Sequence[bool]
    out_avals: Sequence[ShapedArray]
    returns_keys: bool
    bytes_made: int = 2**62  # not known, so that XLA is asked how much memory the program takes
    spread: None = None  # a program of one process: there is none else to compare it with


def _program(content: Content, place: Place) -> Program:
    of_code = content.program
    try:
        executable = load_program(
            content.code,
            place=place,
            in_avals=of_code["in_avals"],
            out_avals=of_code["out_avals"],
            donated=of_code["donated"],
        )
    except JaxRuntimeError as error:
        raise LoadError(f"jaxlib cannot load its machine code: {error}") from None
    avals = content.signature.out_avals
    lowered: Any = _Lowered(
        content.signature.name, place, of_code["kept"], computed(avals), avals, any_keys(avals)
    )
    return Program(lowered, executable)
