"""A module for several platforms becomes one for the platform whose number is known: other branches are dropped.

XLA would find them dead too, but in some programs only after it has looked for the kernels that they call.
"""
from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir

_NUMBER = "_platform_index"
"""JAX's name of the number of the platform."""


def choose_platform(module: ir.Module, number: int) -> None:
    """Put the branch for the platform with this number in the place of each choice among platforms."""
    for function in module.body.operations:
        if _takes_number(function.operation):
            uses = function.operation.regions[0].blocks[0].arguments[0].uses
            for choice in [use.owner.operation for use in uses]:
                if choice.name == "stablehlo.case":
                    _put_in_place(choice, number)


def _takes_number(function: ir.Operation) -> bool:
    """Whether the first argument of a function is marked as the number of the platform."""
    if function.name != "func.func" or "arg_attrs" not in function.attributes:
        return False
    each = list(ir.ArrayAttr(function.attributes["arg_attrs"]))
    if not each:
        return False
    first = ir.DictAttr(each[0])
    return "jax.global_constant" in first and ir.StringAttr(first["jax.global_constant"]).value == _NUMBER


def _put_in_place(choice: ir.Operation, number: int) -> None:
    """Move the operations of a branch in front of the choice, and give their results to whoever used the choice's."""
    branch = choice.regions[min(number, len(choice.regions) - 1)].blocks[0]
    *operations, end = [op.operation for op in branch.operations]
    for operation in operations:
        operation.move_before(choice)
    found: list[Any] = list(end.operands)
    for result, value in zip(choice.results, found, strict=True):
        result.replace_all_uses_with(value)
    choice.erase()
