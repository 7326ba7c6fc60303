"""The check of StableHLO that another process wrote: the types of `main`, and the kernels that it calls.

MLIR's reader of bytecode can crash on bytes that were made to make it crash. So bytes that nobody vouches for are read
in a child process first, which prints what it found; that costs the start of a Python process, once for each content.
"""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
from typing import Any, NamedTuple

from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _sdy

from xlamini.core import LoadError, ShapedArray
from xlamini.core.memo import Memo
from xlamini.lowering.kernels import kernels_of
from xlamini.lowering.mlir import interned
from xlamini.runtime.files.portable import module_of

_PARTITIONS = "mhlo.num_partitions"
_SECONDS = 60
_PROGRAM = "import sys; sys.path[:] = {path!r}; from {name} import main; main()"


class ModuleSummary(NamedTuple):
    """The types of a module's arguments and results, as MLIR writes them, its kernels, and how many devices it is for.
    """

    arguments: list[str]
    results: list[str]
    kernels: list[str]
    devices: int


checked = Memo("file: StableHLO that was read", 512)
"""Summaries by the SHA-256 of the artifact."""


def summary(artifact: bytes, trusted: bool) -> ModuleSummary:
    """The summary of a portable artifact, read in a child process unless trusted; LoadError if it cannot be read."""
    return checked.get_or_make(
        hashlib.sha256(artifact).digest(), lambda: _summary(artifact) if trusted else _in_child(artifact)
    )


def type_text(aval: ShapedArray) -> str:
    """The type as MLIR writes it, such as `tensor<2x3xf32>`."""
    return str(interned().type(aval))


def _summary(artifact: bytes) -> ModuleSummary:
    module = module_of(artifact, interned().context)
    mains = [op for op in module.body.operations if _symbol(op) == "main"]
    if len(mains) != 1:
        raise LoadError("the StableHLO has no function main")
    kind: Any = ir.FunctionType(ir.TypeAttr(mains[0].operation.attributes["function_type"]).value)
    types = list(map(str, kind.inputs)), list(map(str, kind.results))
    return ModuleSummary(*types, kernels_of(module), _devices(module))


def _devices(module: ir.Module) -> int:
    """The number of devices that a module is for; LoadError if a mesh of it has another."""
    attributes = module.operation.attributes
    number = ir.IntegerAttr(attributes[_PARTITIONS]).value if _PARTITIONS in attributes else 1
    for mesh in [op.operation.attributes["mesh"] for op in module.body.operations if op.operation.name == "sdy.mesh"]:
        sizes = [_sdy.MeshAxisAttr(axis).size for axis in _sdy.MeshAttr(mesh).axes]
        if sizes and math.prod(sizes) != number:
            raise LoadError(f"the StableHLO is for {number} devices, but has a mesh of other sizes, {mesh}")
    return number


def _symbol(op: Any) -> str | None:
    attributes = op.operation.attributes
    return ir.StringAttr(attributes["sym_name"]).value if "sym_name" in attributes else None


def _in_child(artifact: bytes) -> ModuleSummary:
    program = _PROGRAM.format(path=sys.path, name=__name__)
    try:
        done = subprocess.run(
            [sys.executable, "-c", program], input=artifact, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LoadError(f"the process that reads the StableHLO first did not end: {error}") from None
    if done.returncode < 0:
        raise LoadError("the StableHLO makes the reader of this jaxlib crash; it is damaged, or made to do harm")
    if done.returncode:
        raise LoadError(f"the StableHLO cannot be read: {done.stderr.decode(errors='replace')[-400:]}")
    found = json.loads(done.stdout)
    if "error" in found:
        raise LoadError(found["error"])
    return ModuleSummary(**found)


def main() -> None:
    """Read an artifact from the standard input, and print its summary or the error as JSON."""
    try:
        found = _summary(sys.stdin.buffer.read())._asdict()
    except LoadError as error:
        found = {"error": str(error)}
    sys.stdout.write(json.dumps(found))
