"""Refinement of modules with symbolic sizes: XLA's pass finds all shapes from those of the arguments."""
from __future__ import annotations

import base64
import io
from collections.abc import Callable
from typing import Any

from jaxlib.mlir import ir

from xlamini.core import Avals, LoadError
from xlamini.core.errors import JaxRuntimeError
from xlamini.lowering.mlir import Interned
from xlamini.runtime.files.module_reader import Call, refined as refined_code
from xlamini.runtime.files.reader_process import answer_of_child

CallCheck = Callable[[list[Call]], None]
"""What refuses custom calls of a module that nobody vouches for, by a LoadError."""


def refined(module: ir.Module, mlir: Interned, check: CallCheck | None) -> ir.Module:
    """The module with shapes that follow from those of `main`; ValueError if one stays unknown.

    With a `check` the pass runs in a child process, because a module can be made to crash it, and what it gives is
    checked as a file without symbolic sizes.
    """
    code = _bytecode(module)
    return ir.Module.parse(_refined_here(code) if check is None else _refined_apart(code, check), mlir.context)


def retype(module: ir.Module, mlir: Interned, avals: Avals, results: Avals) -> None:
    """Give the arguments and results of `main` these types; a platform index comes before the arguments."""
    main: Any = ir.SymbolTable(module.operation)["main"].operation
    block = main.regions[0].blocks[0]
    _retype_arguments(block, [mlir.type(a) for a in avals])
    end = list(block.operations)[-1].operation
    outs = [_cast(x, mlir.type(a), ir.InsertionPoint(end)) for x, a in zip(list(end.operands), results, strict=True)]
    for i, x in enumerate(outs):
        end.operands[i] = x
    ins = [x.type for x in block.arguments]
    kind = ir.FunctionType.get(ins, [x.type for x in outs], context=mlir.context)
    main.attributes["function_type"] = ir.TypeAttr.get(kind, mlir.context)


def _refined_here(code: bytes) -> bytes:
    try:
        return refined_code(code)
    except (JaxRuntimeError, ValueError) as error:
        raise _unknown(error) from None


def _refined_apart(code: bytes, check: CallCheck) -> bytes:
    found = answer_of_child(code, "refine")
    if "refused" in found:
        raise LoadError(
            f"the exported function has {found['refused']} for these sizes, which no exported function has; if you "
            "know who made its file, pass trusted=True to deserialize"
        )
    if "error" in found:
        raise _unknown(found["error"])
    check(found["calls"])
    return base64.b64decode(found["code"])


def _unknown(error: Any) -> ValueError:
    return ValueError(f"the sizes of the exported function cannot be found: {error}")


def _retype_arguments(block: ir.Block, types: list[ir.Type]) -> None:
    """Give the last arguments of a function these types, and their uses the former ones."""
    arguments = list(block.arguments)
    first = ir.InsertionPoint.at_block_begin(block)
    for x, wanted in zip(arguments[len(arguments) - len(types) :], types, strict=True):
        former, uses = x.type, [(use.owner.operation, use.operand_number) for use in x.uses]
        if former != wanted:
            x.set_type(wanted)
            cast = _cast(x, former, first)
            for operation, number in uses:
                operation.operands[number] = cast


def _cast(x: Any, wanted: ir.Type, place: ir.InsertionPoint) -> Any:
    """A value with another type of the same elements."""
    if x.type == wanted:
        return x
    unknown = ir.Location.unknown(wanted.context)
    return ir.Operation.create("stablehlo.convert", [wanted], [x], loc=unknown, ip=place).results[0]


def _bytecode(module: ir.Module) -> bytes:
    code = io.BytesIO()
    module.operation.write_bytecode(code)
    return code.getvalue()
