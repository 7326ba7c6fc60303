"""The names of a program's arguments and results, written into its module in JAX's way."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir

_RESULT = "jax.result_info"


def name_interface(module: ir.Module, arguments: Sequence[str], results: Sequence[str]) -> None:
    """Name the last arguments of `main`, as their locations, and its results, as the attribute `jax.result_info`."""
    context = module.context
    main: Any = next(op.operation for op in module.body.operations if _symbol(op) == "main")
    every = list(main.regions[0].blocks[0].arguments)
    for argument, name in zip(every[len(every) - len(arguments) :], arguments, strict=True):
        argument.set_location(ir.Location.name(_encodable(name), context=context))
    before = list(main.attributes["res_attrs"]) if "res_attrs" in main.attributes else [{}] * len(results)
    named = [
        ir.DictAttr.get({**_items(attributes), _RESULT: ir.StringAttr.get(_encodable(name), context)}, context)
        for attributes, name in zip(before, results, strict=True)
    ]
    main.attributes["res_attrs"] = ir.ArrayAttr.get(named, context)


def _encodable(name: str) -> str:
    """The name as C++ takes it, without lone surrogates, which keys of a dict may have."""
    return name.encode(errors="replace").decode()


def _symbol(op: Any) -> str:
    return ir.StringAttr(op.operation.attributes["sym_name"]).value


def _items(attributes: Any) -> dict[str, Any]:
    return {named.name: named.attr for named in ir.DictAttr(attributes)} if attributes else {}
