"""Linking of serialized modules: their functions are moved into the module under construction, under unused names.

One for several platforms is specialized to one of them: other branches are dropped. XLA would remove them as dead code
too, but in some programs only after it has looked up the kernels that they call.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from xlamini.core import Avals
from xlamini.lowering.context import Context, Value
from xlamini.lowering.mlir import interned
from xlamini.lowering.module import ModuleBuilder
from xlamini.lowering.multi_platform import INDEX
from xlamini.runtime.devices.ffi_targets import require_target
from xlamini.runtime.files.module_reader import kernels_of
from xlamini.runtime.files.portable import module_of

_NUMBER = re.compile(r"handle = -?\d+")
"""The number in `#stablehlo.channel_handle<handle = 1, type = 1>`."""


def call_module(
    ctx: Context,
    artifact: bytes,
    name: str,
    operands: Sequence[Value],
    results: Avals,
    number: int | None = None,
) -> list[Value]:
    """Call `main` of a portable artifact, which is linked into the module at its first call.

    A multi-platform artifact takes the platform index, `number`, as its first operand.
    """
    ctx.forbid_repetition()
    symbol = ctx.module.included.get((artifact, number))
    if symbol is None:
        symbol = ctx.module.included[artifact, number] = _include(ctx, artifact, name, number)
    if number is not None:
        operands = [ctx.constant(np.int32(number), INDEX), *operands]
    callee = ir.FlatSymbolRefAttr.get(symbol, ctx.mlir.context)
    types = [ctx.mlir.type(a) for a in results]
    return ctx.many("func.call", operands, types, callee=callee)


def text_of(artifact: bytes) -> str:
    """The StableHLO text of a portable artifact, with source locations."""
    return module_of(artifact, interned().context).operation.get_asm(enable_debug_info=True)


def _include(ctx: Context, artifact: bytes, name: str, number: int | None) -> str:
    """Move the functions of a module into the one under construction; returns the new name of its `main`."""
    builder: ModuleBuilder = ctx.module
    module = module_of(artifact, builder.mlir.context)
    if number is not None:
        choose_platform(module, number)
    for target in kernels_of(module):
        require_target(target, ctx.platform)
    _renumber_channels(module, builder)
    symbols: list[Any] = [op.operation for op in module.body.operations]
    found = {old: builder.unused(f"{name}.{old}") for old in map(_symbol, symbols)}
    for old, new in found.items():
        ir.SymbolTable.replace_all_symbol_uses(old, new, module.operation)
    for op in symbols:
        ir.SymbolTable.set_symbol_name(op, found[_symbol(op)])
    for mesh in [op for op in symbols if op.name == "sdy.mesh"]:
        _include_mesh(mesh, module, builder)
    for function in [op for op in symbols if op.name != "sdy.mesh"]:
        ir.SymbolTable.set_visibility(function, "private")
        builder.module.body.append(function)
    return found["main"]


def _symbol(op: Any) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value


def _include_mesh(mesh: Any, module: ir.Module, builder: ModuleBuilder) -> None:
    """Move a mesh into the module under construction, or refer to the equal mesh that it has."""
    symbol, known = builder.meshes.linked(mesh.attributes["mesh"])
    ir.SymbolTable.replace_all_symbol_uses(_symbol(mesh), symbol, module.operation)
    if not known:
        ir.SymbolTable.set_symbol_name(mesh, symbol)
        builder.module.body.append(mesh)


def _renumber_channels(module: ir.Module, builder: ModuleBuilder) -> None:
    """Give the collectives of a module channels that the calling program does not use."""

    def renumber(op: Any) -> ir.WalkResult:
        if "channel_handle" in op.attributes:
            text = _NUMBER.sub(f"handle = {builder.channel()}", str(op.attributes["channel_handle"]))
            op.attributes["channel_handle"] = builder.mlir.parse(text)
        return ir.WalkResult.ADVANCE

    module.operation.walk(renumber)


# --- the choice of a platform


_PLATFORM_INDEX = "_platform_index"
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
    return "jax.global_constant" in first and str(first["jax.global_constant"]) == f'"{_PLATFORM_INDEX}"'


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
