"""The reader of StableHLO files, also as a program for a child process.

As a program it serves one file after another: each request is a line with a task and a length, then so many bytes, and
each answer is a line of JSON. The tasks are to `read` an artifact, and to `refine` a module with symbolic sizes, whose
`main` has fixed ones. It imports jaxlib alone, which halves the time of its start.
"""

from __future__ import annotations

import base64
import faulthandler
import json
import math
import re
import sys
from collections.abc import Iterator
from typing import Any

from jaxlib import _jax
from jaxlib.mlir import ir

# The extension modules, not the dialects' Python modules, which define a class for each op and take 20 ms to import.
from jaxlib.mlir._mlir_libs import _chlo, _jax_mlir_ext, _sdy, _stablehlo

_PARTITIONS, _MESH = "mhlo.num_partitions", "sdy.mesh"
_CALL, _FRONTEND = "stablehlo.custom_call", "mhlo.frontend_attributes"
DROPPED = {_MESH: "stablehlo.mesh", _CALL: "sdy.sharding_rule"}
"""Attributes that JAX writes, a mesh in another form and how a kernel may be called on parts of its operands. Nobody
checks them, so they are dropped where a module of an unknown maker is called."""
_OPTIONS = "mhlo.backend_config"
"""The attribute of a call in which JAX writes the options of a kernel; XLA takes it for the fourth version's."""
_USUAL = {
    "api_version": ("1 : i32",),
    "backend_config": ("{}", '""'),
    "called_computations": ("[]",),
    "has_side_effect": ("false",),
}
"""What an attribute of a call says if it is left out."""
_METADATA = {_FRONTEND, "sdy.sharding", "jax.global_constant", "jax.result_info", "mhlo.memory_kind"}
"""Attributes that this library writes at operations, arguments and results of any kind."""
_OF_PASSES = ("xla", "mhlo", "composite", "is_composite")
_REFUSED = [
    *(f"stablehlo.{name}" for name in "infeed outfeed send recv create_token after_all async_start async_done".split()),
    *(f"stablehlo.{name}" for name in "set_dimension_size tuple get_tuple_element".split()),
]
"""Operations that wait for the host, or make arrays whose sizes are known to the device alone."""
_DYNAMIC = [
    *(f"stablehlo.dynamic_{name}" for name in "broadcast_in_dim conv gather iota pad reshape".split()),
    "stablehlo.real_dynamic_slice",
]
"""Operations that take sizes as operands, in modules with symbolic sizes alone."""
_SYMBOLIC = "jax.uses_shape_polymorphism"
OF_SIZES = ("shape_assertion", "stablehlo.dynamic_")
"""The name prefixes of calls that refinement evaluates or replaces, in modules with symbolic sizes alone."""
_ARRAY = re.compile(r"tensor<((?:(?:\d+|\?)x)*)(?:complex<f(?:32|64)>|[a-zA-Z]\w*)>")
_MOST_ELEMENTS = 2**48
Call = list[Any]
"""A custom call: its target, the types of its operands and of its results, and its attributes as text."""
_IDLE = 60
"""Seconds without a file after which the program ends."""
_LEAST, _BYTES = 10, 2**20
"""The longest time for one file is so many seconds, and one more for each so many bytes; then the program ends."""
_MOST_FILES = 500
"""The program ends after so many files, because MLIR frees nothing that it has interned."""


def described(artifact: bytes, context: Any) -> dict[str, Any]:
    """The types of the arguments and results of `main`, as MLIR writes them, the calls, and the number of devices.

    ValueError or JaxRuntimeError for bytes that cannot be read.
    """
    return _described(_jax.mlir.deserialize_portable_artifact(artifact, context))


def _described(module: Any) -> dict[str, Any]:
    functions = {_symbol(op.operation): op.operation for op in module.body.operations if op.operation.name != _MESH}
    if None in functions or "main" not in functions:
        raise ValueError("it has no function main, or operations outside of functions")
    kind: Any = ir.FunctionType(ir.TypeAttr(functions["main"].attributes["function_type"]).value)
    inputs, results = list(map(str, kind.inputs)), list(map(str, kind.results))
    return {
        **{"arguments": inputs, "results": results, "calls": calls_of(module), "devices": _devices(module)},
        "symbolic": is_symbolic(module),
    }


def is_symbolic(module: Any) -> bool:
    """Whether a module is for arguments of any sizes."""
    return _SYMBOLIC in map(_name, module.operation.attributes)


def kernels_of(module: Any) -> list[str]:
    """The sorted names of a module's custom-call targets."""
    return sorted({_target(operation) for operation in _operations(module) if operation.name == _CALL})


def calls_of(module: Any) -> list[Call]:
    """The different custom calls of a module, whatever metadata they have."""
    found = {json.dumps(_call(op)): None for op in _operations(module) if op.name == _CALL}
    return [json.loads(text) for text in found]


def _call(operation: Any) -> Call:
    types = ([str(value.type) for value in values] for values in (operation.operands, operation.results))
    attributes = {name: str(operation.attributes[name]) for name in map(_name, operation.attributes)}
    attributes = dict(sorted(_as_typed(attributes).items()))
    unsaid = _FRONTEND, DROPPED[_CALL]
    kept = {name: text for name, text in attributes.items() if name not in unsaid and text not in _USUAL.get(name, ())}
    return [_target(operation), *types, kept]


def _as_typed(attributes: dict[str, str]) -> dict[str, str]:
    """The attributes of a call with options in the form of this library, if they are in that of JAX, which is older."""
    others = attributes.get("api_version", "1 : i32"), attributes.get("backend_config", '""')
    if _OPTIONS not in attributes or others != ("1 : i32", '""'):
        return attributes
    kept = {name: text for name, text in attributes.items() if name != _OPTIONS}
    return {**kept, "api_version": "4 : i32", "backend_config": attributes[_OPTIONS]}


def _target(operation: Any) -> str:
    return operation.attributes["call_target_name"].value


def _operations(module: Any) -> list[Any]:
    """All operations of a module, those in regions too."""
    found: list[Any] = []

    def visit(operation: Any) -> ir.WalkResult:
        found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def _name(attribute: Any) -> str:
    return attribute if isinstance(attribute, str) else attribute.name  # as jaxlib 0.10 and later ones have it


def _refusal(module: Any, symbolic: bool) -> str | None:
    """What is in a module that no program of this library has, if anything is: an operation, an attribute, a type.

    The compiler believes what it reads in some attributes, such as the memory layout of a result. Unknown sizes, and
    the operations that take sizes, are in symbolic modules alone.
    """
    known = _known_names()
    for name in [] if symbolic else _DYNAMIC:
        known.pop(name, None)
    every = (_oddities(operation, known.get(operation.name), symbolic) for operation in _operations(module))
    return next((odd for found in every for odd in found), None)


def _oddities(operation: Any, own: set[str] | None, symbolic: bool) -> Iterator[str]:
    if own is None:
        yield f"an operation {operation.name}"
        return
    if operation.name == _CALL and symbolic:
        own = {*own, "indices_of_shape_operands", "error_message"}
    elif operation.name == _CALL and _target(operation).startswith(OF_SIZES):
        yield f"a call of {_target(operation)} without symbolic sizes"
    every = [*map(_name, operation.attributes), *_names_of_interfaces(operation)]
    odd = [name for name in every if name not in own and name not in _METADATA]
    yield from (f"an attribute {name} of {operation.name}" for name in [*odd, *_names_for_passes(operation)])
    for kind in _types(operation):
        if not _is_plain(str(kind), symbolic):
            yield f"an array of type {kind} in {operation.name}"


def _names_of_interfaces(operation: Any) -> list[str]:
    """The names of the attributes of a function's arguments and results."""
    groups = [operation.attributes[name] for name in ("arg_attrs", "res_attrs") if name in operation.attributes]
    return [_name(attribute) for group in groups for each in ir.ArrayAttr(group) for attribute in ir.DictAttr(each)]


def _names_for_passes(operation: Any) -> list[str]:
    """The names of text that the compiler's passes read; other text may be there, and has no effect."""
    given = [operation.attributes[_FRONTEND]] if _FRONTEND in operation.attributes else []
    names = [_name(attribute) for each in given for attribute in ir.DictAttr(each)]
    return [name for name in names if name.lstrip("_").startswith(_OF_PASSES)]


def _types(operation: Any) -> Iterator[Any]:
    arguments = [a for region in operation.regions for block in region.blocks for a in block.arguments]
    return (value.type for value in (*operation.operands, *operation.results, *arguments))


def _is_plain(text: str, symbolic: bool) -> bool:
    """Whether it is the type of an array that memory can have, of fixed sizes, or also of symbolic ones."""
    found = _ARRAY.fullmatch(text)
    if found is None:
        return False
    sizes = [n for n in found[1].split("x") if n]
    return ("?" not in sizes or symbolic) and math.prod(int(n) for n in sizes if n != "?") < _MOST_ELEMENTS


def _known_names() -> dict[str, set[str]]:
    """The names of the attributes that each operation has of its own, by the operation's name."""
    from jaxlib.mlir.dialects import _chlo_ops_gen, _func_ops_gen, _sdy_ops_gen, _stablehlo_ops_gen

    dialects = (_chlo_ops_gen, _func_ops_gen, _sdy_ops_gen, _stablehlo_ops_gen)
    classes = [c for dialect in dialects for c in vars(dialect).values() if hasattr(c, "OPERATION_NAME")]
    known = {c.OPERATION_NAME: {n for n, v in vars(c).items() if isinstance(v, property)} for c in classes}
    known[_CALL].add(_OPTIONS)
    for operation, name in DROPPED.items():
        known[operation].add(name)
    known["builtin.module"] = {"sym_name", _PARTITIONS, "mhlo.num_replicas", _SYMBOLIC}
    for name in _REFUSED:
        known.pop(name, None)
    return known


def _devices(module: Any) -> int:
    """The number of devices that a module is for; ValueError if a mesh of it has another."""
    attributes = module.operation.attributes
    number = ir.IntegerAttr(attributes[_PARTITIONS]).value if _PARTITIONS in attributes else 1
    for mesh in [op.operation.attributes["mesh"] for op in module.body.operations if op.operation.name == _MESH]:
        sizes = [_sdy.MeshAxisAttr(axis).size for axis in _sdy.MeshAttr(mesh).axes]
        if sizes and math.prod(sizes) != number:
            raise ValueError(f"it is for {number} devices, but has a mesh of other sizes, {mesh}")
    return number


def _symbol(op: Any) -> str | None:
    is_function = op.name == "func.func" and "sym_name" in op.attributes
    return ir.StringAttr(op.attributes["sym_name"]).value if is_function else None


def new_context() -> Any:
    """An MLIR context with the dialects of programs."""
    context = ir.Context()
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    for dialect in (_stablehlo, _chlo, _sdy):
        dialect.register_dialect(context)
    # One thread builds or reads a module; MLIR would start and stop a thread pool for each context.
    context.enable_multithreading(False)
    return context


def refined(code: bytes) -> bytes:
    """The bytecode of a module with symbolic sizes, where all types have the sizes that follow from those of `main`.

    ValueError or JaxRuntimeError if one does not follow, or the sizes are none that the module is for.
    """
    return _jax.mlir.refine_polymorphic_shapes(code)


def _answer(task: str, code: bytes, context: Any) -> dict[str, Any]:
    try:
        return _TASKS[task](code, context)
    except Exception as error:
        return {"error": str(error)}


def _read(artifact: bytes, context: Any) -> dict[str, Any]:
    module = _jax.mlir.deserialize_portable_artifact(artifact, context)
    refusal = _refusal(module, is_symbolic(module))
    return {"refused": refusal} if refusal else _described(module)


def _refine(code: bytes, context: Any) -> dict[str, Any]:
    found = refined(code)
    module = ir.Module.parse(found, context)
    refusal = _refusal(module, symbolic=False)
    return {"refused": refusal} if refusal else {"code": base64.b64encode(found).decode(), "calls": calls_of(module)}


_TASKS = {"read": _read, "refine": _refine}


def _end_after(seconds: int) -> None:
    faulthandler.dump_traceback_later(seconds, exit=True)  # a thread in C, which no reader in C++ holds up


def main() -> None:
    """Answer the requests on the standard input until it ends."""
    context = new_context()
    for _ in range(_MOST_FILES):
        _end_after(_IDLE)
        line = sys.stdin.buffer.readline()
        if not line:
            return
        task, length = line.decode().split()
        code = sys.stdin.buffer.read(int(length))
        _end_after(_LEAST + len(code) // _BYTES)
        answer = _answer(task, code, context)
        sys.stdout.write(f"{json.dumps(answer)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
