"""The lowering of a jaxpr to a StableHLO module: its functions, and the attributes of its arguments."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib.mlir import ir

from xlamini.core import Avals, Equation, Jaxpr, paused_gc
from xlamini.core.program.form import Platform
from xlamini.core.program.memory_space import DEVICE
from xlamini.lowering.context import Context
from xlamini.lowering.mlir import Interned, interned
from xlamini.lowering.shardy import Meshes
from xlamini.runtime.arrays.layout import mode_of

Attributes = list[dict[str, Any]]


class ModuleBuilder:
    """A module under construction; a called jaxpr becomes one function, shared by all its calls."""

    mesh: Any | None
    leading: Sequence[ir.Type] = ()
    """The types of the leading arguments of every function, before the inputs of its jaxpr."""

    def __init__(self, name: str, platform: str, mesh: Any = None):
        self.mlir: Interned = interned()
        self.platform = platform
        self.module: ir.Module = ir.Module.create(self.mlir.unknown)
        attributes = self.module.operation.attributes
        attributes["sym_name"] = ir.StringAttr.get(name, self.mlir.context)
        self.device_count = 1 if mesh is None else mesh.size
        attributes["mhlo.num_partitions"] = self.mlir.parse(f"{self.device_count} : i32")
        attributes["mhlo.num_replicas"] = self.mlir.parse("1 : i32")
        self.mesh, self._meshes = mesh, None
        self.spans_devices: Any | bool = self.device_count > 1
        self.platforms: tuple[Platform, ...] = (Platform(platform, self.spans_devices),)
        self.manual: Any = None
        """The mesh of the enclosing shard_map, while per-device code is lowered."""
        self.manual_axes: frozenset[Any] = frozenset()
        """The manual axes of that shard_map; the compiler partitions along the others."""
        self._channels = 0
        self.host_callbacks: list[Callable[..., Any]] = []
        self.partitioners: list[Any] = []
        """The objects that XLA's partitioner refers to, which must live until the module has been compiled."""
        self._functions: dict[Jaxpr, str] = {}
        self.paths: dict[Jaxpr, str] = {}
        self._parts: dict[Jaxpr, ir.Attribute] = {}
        self._counts: dict[str, int] = {}
        self._taken: set[str] = set()
        self.included: dict[tuple[Any, ...], str] = {}
        """The `main` functions of linked modules, by artifact, platform index and types of operands."""

    @property
    def meshes(self) -> Meshes:
        """The meshes that the module speaks of; most modules speak of none."""
        if self._meshes is None:
            self._meshes = Meshes(self.module, self.mlir, self.mesh)
        return self._meshes

    def context(self, block: ir.Block, scope: str, prefix: str) -> Context:
        """The context for lowering equations into a block."""
        return Context(self, self.mlir, block, scope, prefix)

    def function(self, jaxpr: Jaxpr, name: str, scope: str, path: str) -> str:
        """The name of the function that computes `jaxpr`; `scope` and `path` are those of its first call."""
        known = self._functions.get(jaxpr)
        if known is None:
            known = self._functions[jaxpr] = self.unused(name)
            self.define(jaxpr, known, scope, path, "private")
        return known

    def part(self, jaxpr: Jaxpr, name: str, eqn: Equation) -> ir.Attribute:
        """The symbol of the function that computes `jaxpr`, the implementation of equations such as `eqn`."""
        known = self._parts.get(jaxpr)
        if known is None:
            symbol = self.unused(name)
            known = self._parts[jaxpr] = ir.FlatSymbolRefAttr.get(symbol, self.mlir.context)
            self.define(jaxpr, symbol, "", "", "private", eqn)
        return known

    def channel(self) -> int:
        """A new channel id for a collective."""
        self._channels += 1
        return self._channels

    def unused(self, name: str) -> str:
        """An unused function name, derived from this one."""
        count, found = self._counts.get(name, 0), name
        while found in self._taken:
            count += 1
            found = f"{name}_{count}"
        self._counts[name] = count
        self._taken.add(found)
        return found

    def new_function(self, symbol: str, ins: Sequence[ir.Type], outs: Sequence[ir.Type], visibility: str) -> Any:
        """The operation of a new function, without a body."""
        mlir = self.mlir
        return ir.Operation.create(
            "func.func",
            attributes={
                "sym_name": mlir.string(symbol),
                "sym_visibility": mlir.string(visibility),
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(ins, outs, context=mlir.context), mlir.context),
            },
            regions=1,
            loc=mlir.unknown,
            ip=ir.InsertionPoint(self.module.body),
        )

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
        """Emit the function `symbol` with the body of `jaxpr`; returns its operation.

        With `part_of` its operations implement such an equation, and have no locations of their own. The first inputs
        of `jaxpr` are the `constants`, which are embedded.
        """
        mlir = self.mlir
        ins = [*self.leading, *[mlir.type(a) for a in jaxpr.in_avals[len(constants) :]]]
        outs = [mlir.type(a) for a in jaxpr.out_avals]
        function = self.new_function(symbol, ins, outs, visibility)
        block = function.regions[0].blocks.append(*ins, arg_locs=[mlir.unknown] * len(ins))
        ctx = self.context(block, scope, prefix)
        if part_of is not None:
            ctx.eqn = part_of
        written = [ctx.constant(x, aval) for x, aval in zip(constants, jaxpr.in_avals, strict=False)]
        results = ctx.run(jaxpr, [*written, *list(block.arguments)[len(self.leading) :]])
        ctx.location = mlir.unknown
        ctx.op("func.return", *results, avals=[])
        return function


class LoweredModule(NamedTuple):
    """A module, with the Python functions that it calls, and those by which XLA partitions it."""

    module: ir.Module
    host_callbacks: list[Callable[..., Any]]
    partitioners: list[Any]


def lower_jaxpr(
    jaxpr: Jaxpr,
    name: str,
    platform: str,
    aliases: Sequence[int | None] = (),
    constants: Sequence[np.ndarray] = (),
    placement: Any = None,
    orders: Any = None,
) -> LoweredModule:
    """The module whose `main` computes `jaxpr`.

    `aliases[i]` is the output that may reuse the memory of input i (donation), or None. The first inputs of `jaxpr` are
    the constants, which are embedded in the module. With a `placement` it is for all devices of a mesh. With `orders`
    the arguments and results have these layouts.
    """
    builder = ModuleBuilder(f"jit_{identifier(name)}", platform, placement.mesh if placement else None)
    with paused_gc():
        main = builder.define(jaxpr, builder.unused("main"), f"jit({name})", "", "public", constants=constants)
    set_attributes(builder, main, jaxpr, placement, aliases, len(constants), orders)
    return LoweredModule(builder.module, builder.host_callbacks, builder.partitioners)


def set_attributes(
    builder: ModuleBuilder,
    main: Any,
    jaxpr: Jaxpr,
    placement: Any,
    aliases: Sequence[int | None] = (),
    constants: int = 0,
    orders: Any = None,
) -> None:
    """Set the shardings, donations, memory kinds and layouts of `main`'s arguments and results, where there are any.

    The first inputs of the jaxpr, the `constants`, are no arguments.
    """
    avals, outs = jaxpr.in_avals[constants:], jaxpr.out_avals
    given: Attributes = [{} for _ in avals]
    asked: Attributes = [{} for _ in outs]
    if placement is not None and placement.mesh.size > 1:
        _add_shardings(builder.meshes, given, placement.of_inputs(len(jaxpr.invars))[constants:], avals)
        _add_shardings(builder.meshes, asked, placement.of_outputs(len(outs)), outs)
        _add_donations(builder.mlir, given, aliases)
    else:
        _add_aliases(builder.mlir, given, aliases)
    _add_memory_kinds(builder.mlir, (*given, *asked), (*avals, *outs))
    for attributes, order in zip((*given, *asked), orders or (), strict=False):
        attributes["mhlo.layout_mode"] = ir.StringAttr.get(mode_of(order), builder.mlir.context)
    count = len(main.regions[0].blocks[0].arguments) - len(avals)
    leading = list(main.attributes["arg_attrs"])[:count] if count else []
    for name, before, each in (("arg_attrs", leading, given), ("res_attrs", [], asked)):
        if any(each):
            dicts = [ir.DictAttr.get(attributes, builder.mlir.context) for attributes in each]
            main.attributes[name] = ir.ArrayAttr.get([*before, *dicts], builder.mlir.context)


def _add_aliases(mlir: Any, given: Attributes, aliases: Sequence[int | None]) -> None:
    for attributes, alias in zip(given, aliases, strict=False):
        if alias is not None:
            attributes["tf.aliasing_output"] = mlir.parse(f"{alias} : i32")


def _add_donations(mlir: Any, given: Attributes, aliases: Sequence[int | None]) -> None:
    """Mark the donated arguments; XLA chooses the output to alias, because their shardings must be equal."""
    for attributes, alias in zip(given, aliases, strict=False):
        if alias is not None:
            attributes["jax.buffer_donor"] = ir.BoolAttr.get(True, mlir.context)


def _add_shardings(meshes: Any, each: Attributes, shardings: Sequence[Any], avals: Avals) -> None:
    for attributes, sharding, aval in zip(each, shardings, avals, strict=True):
        if sharding is not None:
            attributes["sdy.sharding"] = meshes.sharding(sharding, aval.ndim)


def _add_memory_kinds(mlir: Any, each: Sequence[dict[str, Any]], avals: Avals) -> None:
    """The memory kinds of all, if any is not in the device's memory."""
    if all(aval.memory_space is DEVICE for aval in avals):
        return
    for attributes, aval in zip(each, avals, strict=True):
        attributes["mhlo.memory_kind"] = ir.StringAttr.get(aval.memory_space.value, mlir.context)


def identifier(name: str) -> str:
    """A name with all characters replaced that MLIR would quote, or of which XLA would replace each byte."""
    return "".join(c if c.isascii() and c.isalnum() else "_" for c in name)
