"""Platform selection: a multi-platform module is specialized to one platform index; other branches are dropped.

XLA would remove them as dead code too, but in some programs only after it has looked up the kernels that they call.
"""
from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

_NUMBER = "_platform_index"
"""JAX's name of the platform index."""


def choose_platform(module: ir.Module, number: int) -> None:
    """Replace each `case` over the platform index with the branch of this index."""
    for function in module.body.operations:
        if _takes_index(function.operation):
            _choose(function.operation.regions[0].blocks[0].arguments[0], number)


def _choose(index: Any, number: int) -> None:
    """Replace each `case` over this value, also where it is passed into the region of a shard_map."""
    for operation, operand in [(use.owner.operation, use.operand_number) for use in index.uses]:
        if operation.name == "stablehlo.case":
            _inline_branch(operation, number)
        elif operation.name == "sdy.manual_computation":
            _choose(operation.regions[0].blocks[0].arguments[operand], number)


def _takes_index(function: ir.Operation) -> bool:
    """Whether the first argument of a function is marked as the platform index."""
    if function.name != "func.func" or "arg_attrs" not in function.attributes:
        return False
    each = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
    if not each:
        return False
    first = ir.DictAttr(each[0])
    # As text, because the value of an attribute that is no UTF-8 cannot be read.
    return "jax.global_constant" in first and str(first["jax.global_constant"]) == f'"{_NUMBER}"'


def _inline_branch(case: ir.Operation, number: int) -> None:
    """Move the operations of the branch in front of the `case`, and replace its results with theirs."""
    branch = case.regions[min(number, len(case.regions) - 1)].blocks[0]
    *operations, end = [op.operation for op in branch.operations]
    for operation in operations:
        operation.move_before(case)
    found: list[Any] = list(end.operands)
    for result, value in zip(case.results, found, strict=True):
        result.replace_all_uses_with(value)
    case.erase()
