"""The kernels of one's own in a StableHLO module: their own modules as text, and each call as a program by itself."""
from __future__ import annotations

import base64
import io
import json
import re
from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

from xlamini.runtime.files.module_reader import new_context

TPU_CALL, GPU_CALL = "tpu_custom_call", "__gpu$xla.gpu.triton"
_CALL = "stablehlo.custom_call"
_PLACE = re.compile(r'"([^"]+\.\w+)":(\d+):\d+')
_CONFIGS = "backend_config", "mhlo.backend_config"


class KernelCall(NamedTuple):
    """One kernel of a module; several calls of one and the same kernel are one."""

    name: str
    target: str
    """The target of the custom call, `TPU_CALL` or `GPU_CALL`."""
    source: str
    """The user's file and line of the call."""
    lines: tuple[str, ...]
    """The user's lines that the kernel's own operations are from."""
    text: str
    """The kernel's own module: Mosaic, or Triton's TTIR."""
    grid: tuple[int, ...]
    alone: bytes
    """A StableHLO module that calls the kernel and does nothing else, as bytecode."""


def kernel_calls(module: Any) -> list[KernelCall]:
    """The kernels of a StableHLO module, in its order."""
    found: dict[Any, KernelCall] = {}
    kernels, callers = _calls(module)
    for operation in kernels:
        found.setdefault(_key(operation), _kernel_call(operation, callers))
    return list(found.values())


def _calls(module: Any) -> tuple[list[Any], dict[str, Any]]:
    """The calls of kernels, and the first call of each of the module's functions by name."""
    found: list[Any] = []
    callers: dict[str, Any] = {}

    def visit(operation: Any) -> ir.WalkResult:
        if operation.name == "func.call":
            callers.setdefault(operation.attributes["callee"].value, operation)
        if operation.name == _CALL and _target(operation) in (TPU_CALL, GPU_CALL):
            found.append(operation)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found, callers


def _source(operation: Any, callers: Mapping[str, Any]) -> str:
    """The user's file and line; a kernel that is the form of an operation is at the call of that form."""
    place = _place(operation.location)
    function = operation.parent
    while function is not None and function.name != "func.func":
        function = function.parent
    caller = function and callers.get(function.attributes["sym_name"].value)
    return place if place or caller is None else _source(caller, callers)


def _target(operation: Any) -> str:
    return operation.attributes["call_target_name"].value


def _config(operation: Any) -> Any:
    attributes = operation.attributes
    return next(attributes[name] for name in _CONFIGS if name in attributes)


def _key(operation: Any) -> Any:
    types = [str(value.type) for value in (*operation.operands, *operation.results)]
    config = _config(operation)
    if _target(operation) == TPU_CALL:
        return config.value, *types
    return _of(config, "ir").value_bytes, str(_of(config, "grid_x")), str(_of(config, "num_warps")), *types


def _of(config: Any, name: str) -> Any:
    return ir.DictAttr(config)[name]


def _kernel_call(operation: Any, callers: Mapping[str, Any]) -> KernelCall:
    read = _of_tpu if _target(operation) == TPU_CALL else _of_gpu
    name, grid, module = read(operation)
    lines = tuple(dict.fromkeys(_lines(module)))
    source = _source(operation, callers)
    return KernelCall(name, _target(operation), source, lines, str(module), grid, _alone(operation))


def _of_tpu(operation: Any) -> tuple[str, tuple[int, ...], Any]:
    config = json.loads(_config(operation).value)["custom_call_config"]
    module = _mosaic(base64.b64decode(config["body"]))
    main = next(f for f in module.body.operations if "iteration_bounds" in f.attributes or f.name.value == "main")
    has_grid = "iteration_bounds" in main.attributes
    bounds = main.attributes["iteration_bounds"] if has_grid else ()
    called = operation.attributes["kernel_name"].value if "kernel_name" in operation.attributes else main.name.value
    return called, tuple(bounds), module


def _mosaic(body: bytes) -> Any:
    """A kernel's module, which is stored in a form that is stable over versions of the dialect."""
    context = _context_with("_tpu_ext")
    context.allow_unregistered_dialects = True
    with context:
        module = ir.Module.parse(body)
        PassManager.parse("builtin.module(mosaic-serde{serialize=false})").run(module.operation)
    return module


def _context_with(dialect: str) -> ir.Context:
    """An MLIR context with the dialect of one target's kernels, whose bindings are loaded for its programs only."""
    context = new_context()
    import_module(f"jaxlib.mlir._mlir_libs.{dialect}").register_dialect(context)
    return context


def _of_gpu(operation: Any) -> tuple[str, tuple[int, ...], Any]:
    config, context = _config(operation), _context_with("_triton_ext")
    grid = [ir.IntegerAttr(_of(config, f"grid_{axis}")).value for axis in "xyz"]
    module = ir.Module.parse(_of(config, "ir").value_bytes, context)
    return ir.StringAttr(_of(config, "name")).value, tuple(grid), module


def _lines(module: Any) -> Iterator[str]:
    found: list[str] = []

    def visit(operation: Any) -> ir.WalkResult:
        found.append(_place(operation.location))
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return filter(None, found)


def _place(location: Any) -> str:
    found = _PLACE.search(str(location))
    return f"{found[1]}:{found[2]}" if found else ""


def _alone(operation: Any) -> bytes:
    """A module whose only function passes its arguments to the call, and returns the call's results."""
    with operation.context, ir.Location.unknown(operation.context):
        module, inputs = ir.Module.create(), [x.type for x in operation.operands]
        outputs = [x.type for x in operation.results]
        kind = ir.TypeAttr.get(ir.FunctionType.get(inputs, outputs))
        about = {"sym_name": ir.StringAttr.get("main"), "function_type": kind}
        with ir.InsertionPoint(module.body):
            function = ir.Operation.create("func.func", attributes=about, regions=1)
        _fill(function.regions[0].blocks.append(*inputs), operation, outputs)
        buffer = io.BytesIO()
        module.operation.write_bytecode(buffer)
    return buffer.getvalue()


def _fill(block: Any, operation: Any, outputs: list[Any]) -> None:
    kept = {name: operation.attributes[name] for name in _names(operation) if name.partition(".")[0] != "sdy"}
    kept.pop("mhlo.sharding", None)
    with ir.InsertionPoint(block):
        call = ir.Operation.create(_CALL, results=outputs, operands=list(block.arguments), attributes=kept)
        ir.Operation.create("func.return", operands=list(call.results))


def _names(operation: Any) -> list[str]:
    # as jaxlib 0.10 and later ones have them
    return [each if isinstance(each, str) else each.name for each in operation.attributes]
