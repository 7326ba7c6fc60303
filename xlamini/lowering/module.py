"""One jaxpr -> one StableHLO module: its functions, and the attributes of its arguments."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from xlamini.core.gc_pause import paused_gc
from xlamini.core.jaxpr import Equation, Jaxpr
from xlamini.lowering.context import Context
from xlamini.lowering.mlir import Interned, interned
from xlamini.lowering.shardy import Meshes


class ModuleBuilder:
    """A module under construction; a jaxpr that is called becomes one function, whoever calls it."""

    leading: Sequence[ir.Type] = ()
    """What every function takes before the inputs of its jaxpr."""

    def __init__(self, name: str, platform: str, mesh: Any = None):
        self.mlir: Interned = interned()
        self.platform = platform
        self.module = ir.Module.create(self.mlir.unknown)
        attributes = self.module.operation.attributes
        attributes["sym_name"] = ir.StringAttr.get(name, self.mlir.context)
        attributes["mhlo.num_partitions"] = self.mlir.parse(f"{1 if mesh is None else mesh.size} : i32")
        attributes["mhlo.num_replicas"] = self.mlir.parse("1 : i32")
        self._mesh, self._meshes = mesh, None
        self.spans_devices = mesh is not None and mesh.size > 1
        self.manual: Any = None
        """The mesh of whose devices what is being written is the program of one."""
        self.manual_axes: frozenset[Any] = frozenset()
        """The axes that it is one along; the compiler splits that program further along the others."""
        self._channels = 0
        self.host_callbacks: list[Callable[..., Any]] = []
        self._functions: dict[Jaxpr, str] = {}
        self._parts: dict[Jaxpr, ir.Attribute] = {}
        self._counts: dict[str, int] = {}
        self._taken: set[str] = set()
        self.included: dict[tuple[bytes, int | None], str] = {}
        """The `main` functions of other modules that are part of this one, by these and the platform's number there."""

    @property
    def meshes(self) -> Meshes:
        """The meshes that the module speaks of; most modules speak of none."""
        if self._meshes is None:
            self._meshes = Meshes(self.module, self.mlir, self._mesh)
        return self._meshes

    def context(self, block: ir.Block, scope: str, prefix: str) -> Context:
        """What equations are lowered with into a block."""
        return Context(self, self.mlir, block, scope, prefix)

    def function(self, jaxpr: Jaxpr, name: str, scope: str, path: str) -> str:
        """The name of the function that computes `jaxpr`; `scope` and `path` are those of its first call."""
        known = self._functions.get(jaxpr)
        if known is None:
            known = self._functions[jaxpr] = self.unused(name)
            self.define(jaxpr, known, scope, f"{path}.", "private")
        return known

    def part(self, jaxpr: Jaxpr, name: str, eqn: Equation) -> ir.Attribute:
        """The symbol of the function that computes `jaxpr`, which equations such as `eqn` stand for."""
        known = self._parts.get(jaxpr)
        if known is None:
            symbol = self.unused(name)
            known = self._parts[jaxpr] = ir.FlatSymbolRefAttr.get(symbol, self.mlir.context)
            self.define(jaxpr, symbol, "", "", "private", eqn)
        return known

    def channel(self) -> int:
        """The number of the next channel between devices."""
        self._channels += 1
        return self._channels

    def unused(self, name: str) -> str:
        """A name that no function of the module has, made of this one."""
        count, found = self._counts.get(name, 0), name
        while found in self._taken:
            count += 1
            found = f"{name}_{count}"
        self._counts[name] = count
        self._taken.add(found)
        return found

    def define(
        self,
        jaxpr: Jaxpr,
        symbol: str,
        scope: str,
        prefix: str,
        visibility: str,
        part_of: Equation | None = None,
        constants: Sequence[np.ndarray] = (),
    ) -> Any:
        """Write the function `symbol` with the body of `jaxpr`; the operation.

        With `part_of` its operations are parts of such an equation, and have no places of their own. The first inputs
        of `jaxpr` are the `constants`, which are written into it.
        """
        mlir = self.mlir
        ins = [*self.leading, *[mlir.type(a) for a in jaxpr.in_avals[len(constants) :]]]
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
        ctx = self.context(block, scope, prefix)
        if part_of is not None:
            ctx.eqn = part_of
        written = [ctx.constant(x, aval) for x, aval in zip(constants, jaxpr.in_avals, strict=False)]
        results = ctx.run(jaxpr, [*written, *list(block.arguments)[len(self.leading) :]])
        ctx.location = mlir.unknown
        ctx.op("func.return", *results, avals=[])
        return function


def lower_jaxpr(
    jaxpr: Jaxpr,
    name: str,
    platform: str,
    aliases: Sequence[int | None] = (),
    constants: Sequence[np.ndarray] = (),
    spread: Any = None,
) -> tuple[ir.Module, list[Callable[..., Any]]]:
    """The module whose `main` computes `jaxpr`, and the Python functions that it calls, to be compiled with it.

    `aliases[i]` is the output that may reuse the memory of input i (donation), or None. The first inputs of `jaxpr` are
    the constants, which are written into the module. With a `spread` it is for all devices of a mesh.
    """
    builder = ModuleBuilder(f"jit_{identifier(name)}", platform, spread.mesh if spread else None)
    with paused_gc():
        main = builder.define(jaxpr, builder.unused("main"), f"jit({name})", "", "public", constants=constants)
    if spread is not None and spread.mesh.size > 1:
        _set_shardings(builder, main, jaxpr, spread, aliases)
    elif any(a is not None for a in aliases):
        each = ["{}" if a is None else f"{{tf.aliasing_output = {a} : i32}}" for a in aliases]
        main.attributes["arg_attrs"] = builder.mlir.parse(f"[{', '.join(each)}]")
    return builder.module, builder.host_callbacks


def _set_shardings(
    builder: ModuleBuilder, main: Any, jaxpr: Jaxpr, spread: Any, aliases: Sequence[int | None]
) -> None:
    """Say of the arguments of `main` where they lie and which are donated, of its results where they shall lie."""
    mlir, meshes = builder.mlir, builder.meshes
    ins = zip(spread.of_inputs(len(jaxpr.invars)), jaxpr.in_avals, strict=True)
    given = [{"sdy.sharding": meshes.sharding(s, aval.ndim)} for s, aval in ins]
    for attributes, alias in zip(given, aliases, strict=False):
        if alias is not None:  # XLA finds out which output takes the memory: it has to lie alike
            attributes["jax.buffer_donor"] = ir.BoolAttr.get(True, mlir.context)
    outs = zip(spread.of_outputs(len(jaxpr.outvars)), jaxpr.out_avals, strict=True)
    asked = [{} if s is None else {"sdy.sharding": meshes.sharding(s, aval.ndim)} for s, aval in outs]
    for name, each in (("arg_attrs", given), ("res_attrs", asked)):
        dicts = [ir.DictAttr.get(attributes, mlir.context) for attributes in each]
        main.attributes[name] = ir.ArrayAttr.get(dicts, mlir.context)


def identifier(name: str) -> str:
    """A name with nothing in it that MLIR would put in quotes."""
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name)
