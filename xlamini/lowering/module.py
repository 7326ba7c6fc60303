"""One jaxpr -> one StableHLO module: its functions, and the attributes of its arguments."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from jaxlib.mlir import ir

from xlamini.core.gc_pause import paused_gc
from xlamini.core.jaxpr import Equation, Jaxpr
from xlamini.lowering.context import Context
from xlamini.lowering.mlir import Interned, interned


class ModuleBuilder:
    """A module under construction; a jaxpr that is called becomes one function, whoever calls it."""

    def __init__(self, name: str, platform: str):
        self.mlir: Interned = interned()
        self.platform = platform
        self.module = ir.Module.create(self.mlir.unknown)
        attributes = self.module.operation.attributes
        attributes["sym_name"] = ir.StringAttr.get(name, self.mlir.context)
        for key in ("mhlo.num_partitions", "mhlo.num_replicas"):
            attributes[key] = self.mlir.parse("1 : i32")
        self.host_callbacks: list[Callable[..., Any]] = []
        self._functions: dict[Jaxpr, str] = {}
        self._parts: dict[Jaxpr, ir.Attribute] = {}
        self._names: dict[str, int] = {}

    def function(self, jaxpr: Jaxpr, name: str, scope: str, path: str) -> str:
        """The name of the function that computes `jaxpr`; `scope` and `path` are those of its first call."""
        known = self._functions.get(jaxpr)
        if known is None:
            known = self._functions[jaxpr] = self._unused(name)
            self.define(jaxpr, known, scope, f"{path}.", "private")
        return known

    def part(self, jaxpr: Jaxpr, name: str, eqn: Equation) -> ir.Attribute:
        """The symbol of the function that computes `jaxpr`, which equations such as `eqn` stand for."""
        known = self._parts.get(jaxpr)
        if known is None:
            symbol = self._unused(name)
            known = self._parts[jaxpr] = ir.FlatSymbolRefAttr.get(symbol, self.mlir.context)
            self.define(jaxpr, symbol, "", "", "private", eqn)
        return known

    def _unused(self, name: str) -> str:
        count = self._names[name] = self._names.get(name, -1) + 1
        return f"{name}_{count}" if count else name

    def define(
        self, jaxpr: Jaxpr, symbol: str, scope: str, prefix: str, visibility: str, part_of: Equation | None = None
    ) -> Any:
        """Write the function `symbol` with the body of `jaxpr`; the operation.

        With `part_of` its operations are parts of such an equation, and have no places of their own.
        """
        mlir = self.mlir
        ins = [mlir.type(a) for a in jaxpr.in_avals]
        outs = [mlir.type(a) for a in jaxpr.out_avals]
        function = ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": ir.StringAttr.get(symbol, mlir.context),
                "sym_visibility": ir.StringAttr.get(visibility, mlir.context),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(ins, outs, context=mlir.context), mlir.context),
            },
            regions=1,
            loc=mlir.unknown,
            ip=ir.InsertionPoint(self.module.body),
        )
        block = function.regions[0].blocks.append(*ins, arg_locs=[mlir.unknown] * len(ins))
        ctx = Context(self, mlir, block, scope, prefix)
        if part_of is not None:
            ctx.eqn = part_of
        results = ctx.run(jaxpr, list(block.arguments))
        ctx.location = mlir.unknown
        ctx.op("func.return", *results, avals=[])
        return function


def lower_jaxpr(
    jaxpr: Jaxpr, name: str, platform: str, aliases: Sequence[int | None] = ()
) -> tuple[ir.Module, list[Callable[..., Any]]]:
    """The module whose `main` computes `jaxpr`, and the Python functions that it calls, to be compiled with it.

    `aliases[i]` is the output that may reuse the memory of input i (donation), or None.
    """
    builder = ModuleBuilder(f"jit_{_identifier(name)}", platform)
    builder._names["main"] = 0
    with paused_gc():
        main = builder.define(jaxpr, "main", f"jit({name})", "", "public")
    if any(a is not None for a in aliases):
        main.attributes["arg_attrs"] = _alias_attributes(builder.mlir, aliases)
    return builder.module, builder.host_callbacks


def _alias_attributes(mlir: Interned, aliases: Sequence[int | None]) -> ir.Attribute:
    each = ["{}" if a is None else f"{{tf.aliasing_output = {a} : i32}}" for a in aliases]
    return mlir.parse(f"[{', '.join(each)}]")


def _identifier(name: str) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name)
