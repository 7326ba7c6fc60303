"""Multi-platform lowering: one module whose functions take the platform index as their first argument.

An equation is first lowered as for one platform. If its rule read the platform, the emitted operations are erased, and
the equation is lowered for each platform in the branches of a `case` over the index, unless all branches are equal. A
nested jaxpr, such as a loop body, is treated equation by equation in this way too.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.passmanager import PassManager

from xlamini.core import Equation, Jaxpr, paused_gc
from xlamini.core.program.form import Platform
from xlamini.lowering.context import Value
from xlamini.lowering.leading import LeadingContext, LeadingModule
from xlamini.lowering.module import identifier, set_attributes
from xlamini.lowering.specialize import form_p

INDEX_NAME = "_platform_index"
"""JAX's name of the platform index."""

_Tables = tuple[dict[Jaxpr, str], dict[Jaxpr, ir.Attribute]]


class MultiPlatformContext(LeadingContext):
    """The lowering context of a multi-platform module."""

    module: MultiPlatformModule  # type: ignore[assignment]
    constants: dict[Any, Value]

    def __init__(self, module: MultiPlatformModule, mlir: Any, block: ir.Block, scope: str, prefix: str):
        asked = module.asked
        super().__init__(module, mlir, block, scope, prefix)
        module.asked = asked  # the constructor reads the platform, which is no read by a rule
        self._written: list[tuple[ir.Operation, ir.InsertionPoint]] = []

    def many(
        self, name: str, /, operands: Sequence[Value], types: Sequence[ir.Type], regions: Any = (), **attributes: Any
    ) -> list[Value]:
        results = super().many(name, operands, types, regions, **attributes)
        if results:
            self._written.append((results[0].owner, self.insertion))
        return results

    def _lowered(self, eqn: Equation, inputs: list[Value]) -> Sequence[Value]:
        module = self.module
        if module.chosen is not None:
            return self._by_rule(eqn, inputs)
        outer, start = module.asked, len(self._written)
        module.asked = eqn.primitive is form_p  # whose programs are each for one platform
        outs = () if module.asked else self._by_rule(eqn, inputs)
        if module.asked:
            outs = self._by_platform(eqn, inputs, start)
        module.asked = outer  # a read inside a nested equation has been handled there
        return outs

    def _by_platform(self, eqn: Equation, inputs: Sequence[Value], start: int) -> Sequence[Value]:
        """The results of an equation for all platforms, after its lowering for the first one has been erased."""
        self._erase_since(start)
        types = [self.mlir.type(v.aval) for v in eqn.outvars]
        branches = [self.region([], lambda p=p: self._branch(p.name, eqn, inputs)) for p in self.module.platforms]
        results = self.many("stablehlo.case", self.leading[:1], types, branches)
        first, *others = (region.blocks[0] for region in results[0].owner.regions)
        if not all(equal_blocks(first, other) for other in others):
            return results
        self._erase_since(start)
        return self._branch(self.module.platforms[0].name, eqn, inputs)

    def _branch(self, platform: str, eqn: Equation, inputs: Sequence[Value]) -> Sequence[Value]:
        self.module.choose(platform)
        try:
            return self._by_rule(eqn, inputs)
        finally:
            self.module.choose(None)

    def _erase_since(self, start: int) -> None:
        """Erase the operations emitted into this block since `start`; regions go with their operation."""
        here = [operation for operation, place in self._written[start:] if place is self.insertion]
        del self._written[start:]
        self.constants = {key: x for key, x in self.constants.items() if x.owner not in here}
        for operation in reversed(here):
            operation.erase()


class MultiPlatformModule(LeadingModule):
    """A multi-platform module under construction; in a branch it is specific to one platform."""

    asked: bool
    chosen: str | None

    context_type = MultiPlatformContext

    def __init__(self, name: str, platforms: Sequence[str], mesh: Any = None, names: Sequence[str] = ()):
        self.asked, self.chosen = False, None
        super().__init__(name, platforms[0], mesh, (INDEX_NAME, *names))
        self.platforms: tuple[Platform, ...] = tuple(Platform(name, self.spans_devices) for name in platforms)
        self._tables: dict[str | None, _Tables] = {None: (self._functions, self._parts)}

    @property
    def platform(self) -> str:
        """The platform of the branch; outside a branch the first platform, and the read is recorded."""
        self.asked = True
        return self._first if self.chosen is None else self.chosen

    @platform.setter
    def platform(self, first: str) -> None:
        self._first = first

    def choose(self, platform: str | None) -> None:
        """Lower for one platform from now on; None for all. Functions are shared only within a platform."""
        self.chosen = platform
        self._functions, self._parts = self._tables.setdefault(platform, ({}, {}))


def lower_multi_platform(
    jaxpr: Jaxpr,
    name: str,
    platforms: Sequence[str],
    constants: Sequence[np.ndarray] = (),
    placement: Any = None,
) -> tuple[ir.Module, list[Callable[..., Any]]]:
    """The module whose `main` takes the platform index and computes `jaxpr`, with its callbacks as in `lower_jaxpr`.

    The first inputs of `jaxpr` are the constants, which are embedded in the module. With a `placement` it is for all
    devices of a mesh.
    """
    builder = MultiPlatformModule(f"jit_{identifier(name)}", platforms, placement.mesh if placement else None)
    with paused_gc():
        main = builder.define(jaxpr, builder.unused("main"), f"jit({name})", "", "public", constants=constants)
    set_attributes(builder, main, jaxpr, placement, constants=len(constants))
    drop_unused(builder)
    return builder.module, builder.host_callbacks


def drop_unused(builder: LeadingModule) -> None:
    """Drop the functions of erased calls."""
    with builder.mlir.context:
        PassManager.parse("builtin.module(symbol-dce)").run(builder.module.operation)


def equal_blocks(first: ir.Block, second: ir.Block, same: dict[Any, Any] | None = None) -> bool:
    """Whether two blocks have equal operations on equal operands; `same` maps values of the first to the second's."""
    known = dict(same or {})
    known.update(zip(first.arguments, second.arguments, strict=False))
    pairs = list(zip(first.operations, second.operations, strict=False))
    if len(list(first.operations)) != len(list(second.operations)):
        return False
    return all(_equal_operations(x.operation, y.operation, known) for x, y in pairs)


def _equal_operations(x: ir.Operation, y: ir.Operation, known: dict[Any, Any]) -> bool:
    """Whether two operations are equal; their results are added to `known`, the map of equal values."""
    same = (
        x.name == y.name
        and [known.get(v, v) for v in x.operands] == list(y.operands)
        and [v.type for v in x.results] == [v.type for v in y.results]
        and _attributes(x) == _attributes(y)
        and len(x.regions) == len(y.regions)
        and all(_equal_regions(a, b, known) for a, b in zip(x.regions, y.regions, strict=True))
    )
    known.update(zip(x.results, y.results, strict=False))
    return same


def _equal_regions(x: ir.Region, y: ir.Region, known: dict[Any, Any]) -> bool:
    if len(x.blocks) != len(y.blocks):
        return False
    return all(equal_blocks(a, b, known) for a, b in zip(x.blocks, y.blocks, strict=True))


def _attributes(operation: ir.Operation) -> Any:
    """The attributes; of a constant of complex numbers, for which the bindings have no class, the text."""
    try:
        return dict(operation.attributes.items())
    except TypeError:
        return str(operation.get_asm(use_local_scope=True)).partition("=")[2]
