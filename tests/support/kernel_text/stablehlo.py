"""The operations of StableHLO that stand around the call of a kernel, and the call itself."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

from tests.support.kernel_text.kinds import filled
from tests.support.kernel_text.machine import KernelTextError, Machine, Op, Reader, Rule, kernel_dialects, parsed
from tests.support.kernel_text.run import run_mosaic, run_triton
from tests.support.kernel_text.scf import SCF


def run_program(text: str, operands: Sequence[Any]) -> list[np.ndarray]:
    """The results of a lowered program for a GPU or a TPU, whose work is in kernels."""
    functions = Reader(STABLEHLO).functions(parsed(text))
    return Machine(functions).call("main", [np.asarray(x) for x in operands])


def kernel_module(op: Op) -> Any:
    """The kernel's own module, from the call."""
    config, context = op.attributes["backend_config"], kernel_dialects()
    if op.attributes["call_target_name"] == "__gpu$xla.gpu.triton":
        return parsed(config["ir"], context)
    with context, ir.Location.unknown():
        module = ir.Module.parse(base64.b64decode(json.loads(config)["custom_call_config"]["body"]))
        PassManager.parse("builtin.module(mosaic-serde{serialize=false})").run(module.operation)
    return module


def _custom_call(machine: Machine, op: Op, *operands: Any) -> list[np.ndarray]:
    results = [(k.shape, _unsigned_as_bits(np.empty(0, k.dtype)).dtype) for k in op.kinds]
    inputs, aliases = list(map(_unsigned_as_bits, operands)), _aliases(op)
    target, module = op.attributes["call_target_name"], kernel_module(op)
    if target == "tpu_custom_call":
        outs = run_mosaic(module, inputs, results, aliases)
    elif target == "__gpu$xla.gpu.triton":
        config = op.attributes["backend_config"]
        grid = [config[f"grid_{axis}"] for axis in "xyz"]
        outs = run_triton(module, inputs, results, grid, aliases, config["name"])
    else:
        raise KernelTextError(f"a call of {target} is no kernel")
    return [out.view(kind.dtype) for out, kind in zip(outs, op.kinds, strict=True)]


def _unsigned_as_bits(x: Any) -> np.ndarray:
    """Integers without a sign are signed ones of the same bits in a kernel."""
    x = np.asarray(x)
    return x.view(f"i{x.dtype.itemsize}") if x.dtype.kind == "u" else x


def _aliases(op: Op) -> dict[int, int]:
    """The operand of each result that takes its memory."""
    pattern = r"output_tuple_indices = \[(\d*)\],\s*operand_index = (\d+)"
    found = re.findall(pattern, str(op.attributes.get("output_operand_aliases", "")))
    return {int(operand): int(output or 0) for output, operand in found}


_TESTS = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
}


def _compare(machine: Machine, op: Op, x: Any, y: Any) -> np.ndarray:
    direction = re.search(r"\b(EQ|NE|LT|LE|GT|GE)\b", op.attributes["comparison_direction"])
    assert direction
    return _TESTS[direction[1]](x, y)


def _spread(machine: Machine, op: Op, x: Any) -> np.ndarray:
    sizes = [1] * len(op.kinds[0].shape)
    for i, d in enumerate(op.attributes["broadcast_dimensions"]):
        sizes[d] = x.shape[i]
    return np.broadcast_to(np.reshape(x, sizes), op.kinds[0].shape)


def _slice(machine: Machine, op: Op, x: Any) -> np.ndarray:
    ends = zip(*(op.attributes[k] for k in ("start_indices", "limit_indices", "strides")), strict=True)
    return x[tuple(slice(*each) for each in ends)]


STABLEHLO: dict[str, Rule] = {
    **SCF,
    "stablehlo.custom_call": _custom_call, "stablehlo.compare": _compare,
    "stablehlo.constant": lambda machine, op: filled(op.kinds[0], op.attributes["value"]),
    "stablehlo.convert": lambda machine, op, x: x.astype(op.kinds[0].dtype),
    "stablehlo.bitcast_convert": lambda machine, op, x: x.view(op.kinds[0].dtype),
    "stablehlo.reshape": lambda machine, op, x: x.reshape(op.kinds[0].shape),
    "stablehlo.transpose": lambda machine, op, x: np.transpose(x, op.attributes["permutation"]),
    "stablehlo.broadcast_in_dim": _spread, "stablehlo.slice": _slice,
    "stablehlo.add": lambda machine, op, x, y: x + y, "stablehlo.multiply": lambda machine, op, x, y: x * y,
}  # fmt: skip
