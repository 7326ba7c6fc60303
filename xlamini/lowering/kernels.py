"""The custom-call targets of a module."""
from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir


def kernels_of(module: ir.Module) -> list[str]:
    """The sorted names of a module's custom-call targets."""
    found: set[str] = set()

    def visit(operation: Any) -> ir.WalkResult:
        if operation.name == "stablehlo.custom_call":
            found.add(operation.attributes["call_target_name"].value)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return sorted(found)
