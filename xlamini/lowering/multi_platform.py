"""One module for several platforms: each of its functions takes the number of the platform first.

An equation is lowered as for one platform. If its rule asked for the platform, what it wrote is taken back, and it is
lowered for each of them, in the branches of a `case` over the number; unless all branches came out alike. What an
equation has inside, such as the body of a loop, is looked at equation by equation in the same way.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

from xlamini.core.avals import ShapedArray
from xlamini.core.gc_pause import paused_gc
from xlamini.core.jaxpr import Equation, Jaxpr
from xlamini.lowering.context import Context, Value
from xlamini.lowering.module import ModuleBuilder, identifier
from xlamini.lowering.region_equality import alike

INDEX = ShapedArray((), np.dtype(np.int32))
"""The number of the platform."""

_Tables = tuple[dict[Jaxpr, str], dict[Jaxpr, ir.Attribute]]


class SeveralPlatforms(ModuleBuilder):
    """A module under construction for several platforms; while it writes a branch, for one of them."""

    def __init__(self, name: str, platforms: Sequence[str]):
        self.asked, self.chosen = False, None
        super().__init__(name, platforms[0])
        self.platforms = platforms
        self.leading = [self.mlir.type(INDEX)]
        self._tables: dict[str | None, _Tables] = {None: (self._functions, self._parts)}

    @property
    def platform(self) -> str:
        """The platform of the branch; else the first of all, and it is noted that somebody asked."""
        self.asked = True
        return self._first if self.chosen is None else self.chosen

    @platform.setter
    def platform(self, first: str) -> None:
        self._first = first

    def choose(self, platform: str | None) -> None:
        """Write for one platform from now on; None for all. Functions belong to the platform they were written for."""
        self.chosen = platform
        self._functions, self._parts = self._tables.setdefault(platform, ({}, {}))

    def define(self, *args: Any, **options: Any) -> Any:
        """Write a function, whose first argument is marked as JAX marks it."""
        function = super().define(*args, **options)
        count = len(function.regions[0].blocks[0].arguments)
        each = ['{jax.global_constant = "_platform_index"}', *["{}"] * (count - 1)]
        function.attributes["arg_attrs"] = self.mlir.parse(f"[{', '.join(each)}]")
        return function

    def context(self, block: ir.Block, scope: str, prefix: str) -> Context:
        asked = self.asked
        made = _Context(self, self.mlir, block, scope, prefix)
        made.number = block.arguments[0]
        self.asked = asked  # to make it is not what a rule asks for
        return made


class _Context(Context):
    """Lowers equations into one block of a module for several platforms."""

    module: SeveralPlatforms
    number: Value

    def __init__(self, module: SeveralPlatforms, mlir: Any, block: ir.Block, scope: str, prefix: str):
        super().__init__(module, mlir, block, scope, prefix)
        self._written: list[tuple[ir.Operation, ir.InsertionPoint]] = []

    def many(
        self, name: str, /, operands: Sequence[Value], types: Sequence[ir.Type], regions: Any = (), **attributes: Any
    ) -> list[Value]:
        if name == "stablehlo.composite":  # its operands are those of its function, which takes the number too
            name, attributes = "func.call", {"callee": attributes["decomposition"]}
        if name == "func.call" and attributes["callee"].value not in self.module.included.values():
            operands = [self.number, *operands]
        results = super().many(name, operands, types, regions, **attributes)
        if results:
            self._written.append((results[0].owner, self.insertion))
        return results

    def _lowered(self, eqn: Equation, inputs: list[Value]) -> Sequence[Value]:
        module = self.module
        if module.chosen is not None:
            return self._by_rule(eqn, inputs)
        outer, start = module.asked, len(self._written)
        module.asked = False
        outs = self._by_rule(eqn, inputs)
        if module.asked:
            outs = self._by_platform(eqn, inputs, start)
        module.asked = outer  # what an equation inside asked for is settled there
        return outs

    def _by_platform(self, eqn: Equation, inputs: Sequence[Value], start: int) -> Sequence[Value]:
        """The results of an equation that was written for the first platform, for all."""
        self._take_back(start)
        types = [self.mlir.type(v.aval) for v in eqn.outvars]
        branches = [self.region([], lambda p=p: self._branch(p, eqn, inputs)) for p in self.module.platforms]
        results = self.many("stablehlo.case", [self.number], types, branches)
        first, *others = (region.blocks[0] for region in results[0].owner.regions)
        if not all(alike(first, other) for other in others):
            return results
        self._take_back(start)
        return self._branch(self.module.platforms[0], eqn, inputs)

    def _branch(self, platform: str, eqn: Equation, inputs: Sequence[Value]) -> Sequence[Value]:
        self.module.choose(platform)
        try:
            return self._by_rule(eqn, inputs)
        finally:
            self.module.choose(None)

    def _take_back(self, start: int) -> None:
        """Erase what was written here since then; what stands in regions goes with the operation they belong to."""
        here = [operation for operation, place in self._written[start:] if place is self.insertion]
        del self._written[start:]
        self.constants = {key: x for key, x in self.constants.items() if x.owner not in here}
        for operation in reversed(here):
            operation.erase()


def lower_for_several(
    jaxpr: Jaxpr, name: str, platforms: Sequence[str], constants: Sequence[np.ndarray] = ()
) -> tuple[ir.Module, list[Callable[..., Any]]]:
    """The module whose `main` takes the number of one of the platforms, and computes `jaxpr`; as `lower_jaxpr`.

    The first inputs of `jaxpr` are the constants, which are written into it.
    """
    builder = SeveralPlatforms(f"jit_{identifier(name)}", platforms)
    with paused_gc():
        builder.define(jaxpr, builder.unused("main"), f"jit({name})", "", "public", constants=constants)
    with builder.mlir.context:  # functions that belonged to what was taken back
        PassManager.parse("builtin.module(symbol-dce)").run(builder.module.operation)
    return builder.module, builder.host_callbacks
