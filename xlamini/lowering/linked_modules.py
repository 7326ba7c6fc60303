"""Linking of serialized modules: their functions are moved into the module under construction, under unused names.

One for several platforms is specialized to one of them: other branches are dropped. XLA would remove them as dead code
too, but in some programs only after it has looked up the kernels that they call.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib.mlir import ir

from xlamini.core import Avals, ShapedArray
from xlamini.core.sizes.expression import is_symbolic_shape
from xlamini.lowering.context import Context, Value
from xlamini.lowering.leading import NUMBER
from xlamini.lowering.mlir import interned
from xlamini.lowering.module import ModuleBuilder
from xlamini.lowering.multi_platform import INDEX_NAME
from xlamini.lowering.refinement import CallCheck, refined, retype
from xlamini.runtime.devices.ffi_targets import require_target
from xlamini.runtime.files.module_reader import DROPPED, OF_SIZES, is_symbolic, kernels_of
from xlamini.runtime.files.portable import module_of

_NUMBER = re.compile(r"handle = -?\d+")
"""The number in `#stablehlo.channel_handle<handle = 1, type = 1>`."""


class LinkedModule(NamedTuple):
    """A portable artifact that is called: its name, results, and checks.

    `number` is the platform index, which a multi-platform artifact takes as its first operand. `check` refuses custom
    calls of one with symbolic sizes that nobody vouches for; None for others.
    """

    artifact: bytes
    name: str
    results: tuple[ShapedArray, ...]
    number: int | None = None
    check: CallCheck | None = None


def call_module(ctx: Context, linked: LinkedModule, operands: Sequence[Value], avals: Avals) -> list[Value]:
    """Call `main` of a portable artifact for operands of the types `avals`; it is linked in at its first such call.

    In a module with symbolic sizes it is linked in as it is, once for each list of sizes, because XLA's refinement of
    the whole gives a function one list of types.
    """
    ctx.forbid_repetition()
    key = linked.artifact, linked.number, *((ctx.mlir.type(a), a.shape) for a in avals)
    symbol = ctx.module.included.get(key)
    if symbol is None:
        symbol = ctx.module.included[key] = _include(ctx, linked, avals)
    if linked.number is not None:
        operands = [ctx.constant(np.int32(linked.number), NUMBER), *operands]
    callee = ir.FlatSymbolRefAttr.get(symbol, ctx.mlir.context)
    types = [ctx.mlir.type(a) for a in linked.results]
    return ctx.many("func.call", operands, types, callee=callee)


def text_of(artifact: bytes) -> str:
    """The StableHLO text of a portable artifact, with source locations."""
    return module_of(artifact, interned().context).operation.get_asm(enable_debug_info=True)


def _include(ctx: Context, linked: LinkedModule, avals: Avals) -> str:
    """Move the functions of a module into the one under construction; returns the new name of its `main`."""
    builder: ModuleBuilder = ctx.module
    module, name = module_of(linked.artifact, builder.mlir.context), linked.name
    if linked.number is not None:
        choose_platform(module, linked.number)
    if is_symbolic(module):
        module = _for_sizes(module, builder, linked, avals)
    for target in kernels_of(module):
        if not target.startswith(OF_SIZES):
            require_target(target, ctx.platform)
    if linked.check is not None:
        _drop_hints(module)
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
        function.attributes["sym_visibility"] = builder.mlir.string("private")  # which JAX leaves out at some
        builder.module.body.append(function)
    return found["main"]


def _for_sizes(module: ir.Module, builder: ModuleBuilder, linked: LinkedModule, avals: Avals) -> ir.Module:
    """A module with symbolic sizes for arguments of these types, which may be symbolic too."""
    retype(module, builder.mlir, avals, linked.results)
    if not any(is_symbolic_shape(a.shape) for a in avals):
        return refined(module, builder.mlir, linked.check)
    return module


def _symbol(op: Any) -> str:
    return ir.StringAttr(op.attributes["sym_name"]).value


def _include_mesh(mesh: Any, module: ir.Module, builder: ModuleBuilder) -> None:
    """Move a mesh into the module under construction, or refer to the equal mesh that it has."""
    symbol, known = builder.meshes.linked(mesh.attributes["mesh"])
    ir.SymbolTable.replace_all_symbol_uses(_symbol(mesh), symbol, module.operation)
    if not known:
        ir.SymbolTable.set_symbol_name(mesh, symbol)
        builder.module.body.append(mesh)


def _drop_hints(module: ir.Module) -> None:
    """Remove the attributes that nobody checks, and programs do without."""

    def drop(op: Any) -> ir.WalkResult:
        name = DROPPED.get(op.name)
        if name is not None and name in op.attributes:
            del op.attributes[name]
        return ir.WalkResult.ADVANCE

    module.operation.walk(drop)


def _renumber_channels(module: ir.Module, builder: ModuleBuilder) -> None:
    """Give the collectives of a module channels that the calling program does not use."""

    def renumber(op: Any) -> ir.WalkResult:
        if "channel_handle" in op.attributes:
            text = _NUMBER.sub(f"handle = {builder.channel()}", str(op.attributes["channel_handle"]))
            op.attributes["channel_handle"] = builder.mlir.parse(text)
        return ir.WalkResult.ADVANCE

    module.operation.walk(renumber)


# --- the choice of a platform


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
    return "jax.global_constant" in first and str(first["jax.global_constant"]) == f'"{INDEX_NAME}"'


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
