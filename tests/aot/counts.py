"""Counts of programs compiled for a target: XLA's estimated cycles on a TPU, kernels, and memory."""
from __future__ import annotations

from typing import Any

import xlamini
from xlamini.inspection.xla.hlo import Module
from xlamini.inspection.xla.kernels import kernels_in
from xlamini.runtime.hlo.cycle_estimate import estimated_cycles
from xlamini.runtime.targets.topology import Target


def shaped(*shape: int, dtype: Any = "float32") -> Any:
    return xlamini.ShapeDtypeStruct(shape, dtype)


def compiled(fun: Any, target: Target, *args: Any) -> Any:
    return xlamini.jit(fun).trace(*args).lower(target=target).compile()


def cycles(fun: Any, target: Target, *args: Any) -> int:
    return estimated_cycles(compiled(fun, target, *args).as_text())


def kernels(fun: Any, target: Target, *args: Any) -> list[str]:
    """The opcodes of the kernels, each as often as it runs."""
    module = Module(compiled(fun, target, *args).as_text())
    return [found.each.opcode for found in kernels_in(module) for _ in range(found.around.times)]


def memory(fun: Any, target: Target, *args: Any) -> int:
    """The bytes of arguments, results and temporaries."""
    stats = compiled(fun, target, *args).memory_analysis()
    return stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes
