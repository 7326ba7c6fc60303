"""The reader of StableHLO files, also as a program for a child process.

As a program it serves one file after another: each request is a line with a length, then so many bytes, and each answer
is a line of JSON. It imports jaxlib alone, which halves the time of its start.
"""

from __future__ import annotations

import faulthandler
import json
import math
import sys
from typing import Any

from jaxlib import _jax
from jaxlib.mlir import ir

# The extension modules, not the dialects' Python modules, which define a class for each op and take 20 ms to import.
from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _sdy, _stablehlo

_PARTITIONS, _MESH = "mhlo.num_partitions", "sdy.mesh"
_IDLE = 60
"""Seconds without a file after which the program ends."""
_LEAST, _BYTES = 10, 2**20
"""The longest time for one file is so many seconds, and one more for each so many bytes; then the program ends."""
_MOST_FILES = 500
"""The program ends after so many files, because MLIR frees nothing that it has interned."""


def described(artifact: bytes, context: Any) -> dict[str, Any]:
    """The types of the arguments and results of `main`, as MLIR writes them, the kernels, and the number of devices.

    ValueError or JaxRuntimeError for bytes that cannot be read.
    """
    module = _jax.mlir.deserialize_portable_artifact(artifact, context)
    functions = {_symbol(op.operation): op.operation for op in module.body.operations if op.operation.name != _MESH}
    if None in functions or "main" not in functions:
        raise ValueError("it has no function main, or operations outside of functions")
    kind: Any = ir.FunctionType(ir.TypeAttr(functions["main"].attributes["function_type"]).value)
    inputs, results = list(map(str, kind.inputs)), list(map(str, kind.results))
    return {"arguments": inputs, "results": results, "kernels": kernels_of(module), "devices": _devices(module)}


def kernels_of(module: Any) -> list[str]:
    """The sorted names of a module's custom-call targets."""
    found: set[str] = set()

    def visit(operation: Any) -> ir.WalkResult:
        if operation.name == "stablehlo.custom_call":
            found.add(operation.attributes["call_target_name"].value)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return sorted(found)


def _devices(module: Any) -> int:
    """The number of devices that a module is for; ValueError if a mesh of it has another."""
    attributes = module.operation.attributes
    number = ir.IntegerAttr(attributes[_PARTITIONS]).value if _PARTITIONS in attributes else 1
    for mesh in [op.operation.attributes["mesh"] for op in module.body.operations if op.operation.name == _MESH]:
        sizes = [_sdy.MeshAxisAttr(axis).size for axis in _sdy.MeshAttr(mesh).axes]
        if sizes and math.prod(sizes) != number:
            raise ValueError(f"it is for {number} devices, but has a mesh of other sizes, {mesh}")
    return number


def _symbol(op: Any) -> str | None:
    is_function = op.name == "func.func" and "sym_name" in op.attributes
    return ir.StringAttr(op.attributes["sym_name"]).value if is_function else None


def new_context() -> Any:
    """An MLIR context with the dialects of programs."""
    context = ir.Context()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (_stablehlo, _chlo, _sdy):
        dialect.register_dialect(context)
    # One thread builds or reads a module; MLIR would start and stop a thread pool for each context.
    context.enable_multithreading(False)
    return context


def _answer(artifact: bytes, context: Any) -> dict[str, Any]:
    try:
        return described(artifact, context)
    except Exception as error:
        return {"error": str(error)}


def _end_after(seconds: int) -> None:
    faulthandler.dump_traceback_later(seconds, exit=True)  # a thread in C, which no reader in C++ holds up


def main() -> None:
    """Answer the requests on the standard input until it ends."""
    context = new_context()
    for _ in range(_MOST_FILES):
        _end_after(_IDLE)
        line = sys.stdin.buffer.readline()
        if not line:
            return
        artifact = sys.stdin.buffer.read(int(line))
        _end_after(_LEAST + len(artifact) // _BYTES)
        answer = _answer(artifact, context)
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
