"""Compiles StableHLO for a target, and reads from the compiled program what it costs there.

    python -m benchmarks.targets.measure TARGET FILE…

prints as JSON, for each file, the counts or the error. Both libraries' programs pass here through the same calls.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jaxlib.mlir import ir

import xlamini
from benchmarks.targets.counts import Counts, failure
from xlamini.inspection.xla.hlo import HloComputation, Module
from xlamini.inspection.xla.kernels import is_library_call, kernels_in
from xlamini.lowering.mlir import interned
from xlamini.runtime.devices.ffi_targets import register_kernels
from xlamini.runtime.hlo.cycle_estimate import estimated_cycles
from xlamini.runtime.hlo.instructions import Instruction
from xlamini.runtime.hlo.translation import optimized_cost
from xlamini.runtime.targets.compile_only import compiled_ahead

_ELEMENT = re.compile(r"^\(?([a-z]\w*)\[")
PRODUCTS = ("dot", "convolution")


def compiled(target: str, text: str) -> Any:
    """The executable of a StableHLO module for the first device of a target."""
    device = xlamini.target(target).devices[0]
    register_kernels(device.platform)
    with interned().context:
        module = ir.Module.parse(text)
        return compiled_ahead(module, (device,), {})


def counts(executable: Any) -> Counts:
    """What a compiled program runs and moves."""
    text = "\n".join(module.to_string() for module in executable.hlo_modules())
    module = Module(text)
    stats = executable.get_compiled_memory_stats()
    inside = stats.argument_size_in_bytes + stats.output_size_in_bytes - stats.alias_size_in_bytes
    return Counts(
        estimated_cycles(text),
        sum(found.around.times for found in kernels_in(module)),
        _bytes(executable),
        stats.temp_size_in_bytes + inside,
        dict(Counter(_products(module))),
    )


def _bytes(executable: Any) -> float:
    try:
        cost = executable.cost_analysis()
    except xlamini.errors.JaxRuntimeError:  # a GPU's compiler has no analysis
        cost = optimized_cost(executable)
    return cost.get("bytes accessed", 0.0)


def _products(module: Module) -> Iterator[str]:
    """The dtypes of the operands of each matrix product and convolution, also of those inside fusions."""
    for around in module.computations.values():
        for each in around.instructions.values():
            if each.opcode in PRODUCTS or (each.opcode == "custom-call" and is_library_call(each)):
                yield _dtypes(around, each)


def _dtypes(around: HloComputation, each: Instruction) -> str:
    types = [around.instructions[name].type for name in each.operands[:2] if name in around.instructions]
    return " x ".join(found[1] if (found := _ELEMENT.match(of_type)) else of_type for of_type in types)


def main(target: str, *paths: str) -> None:
    """Compile and count each file."""
    found = {}
    for path in paths:
        try:
            found[path] = dataclasses.asdict(counts(compiled(target, Path(path).read_text())))
        except Exception as error:
            found[path] = failure(error)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
