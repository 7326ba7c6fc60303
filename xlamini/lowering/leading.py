"""Modules whose functions take leading arguments, before the inputs of their jaxprs: what holds of the whole program.

These are the index of the platform (multi_platform.py) and the values of symbolic sizes (symbolic.py). Each call of a
function passes them on. They are marked in JAX's way, so that XLA's passes know that all calls have the same ones.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from xlamini.core import ShapedArray
from xlamini.lowering.context import Context, Value
from xlamini.lowering.module import ModuleBuilder

NUMBER = ShapedArray((), np.dtype(np.int32))
"""The type of leading arguments."""


class LeadingContext(Context):
    """A lowering context that passes the leading arguments on to the functions of the module."""

    module: LeadingModule

    def many(
        self, name: str, /, operands: Sequence[Value], types: Sequence[ir.Type], regions: Any = (), **attributes: Any
    ) -> list[Value]:
        if name == "stablehlo.composite":  # a composite and its function must agree in operands: a call in its place
            name, attributes = "func.call", {"callee": attributes["decomposition"]}
        if name == "func.call" and attributes["callee"].value not in self.module.included.values():
            operands = [*self.leading, *operands]
        return super().many(name, operands, types, regions, **attributes)


class LeadingModule(ModuleBuilder):
    """A module under construction, whose functions take leading arguments of these names."""

    context_type = LeadingContext

    def __init__(self, name: str, platform: str, mesh: Any = None, names: Sequence[str] = ()):
        super().__init__(name, platform, mesh)
        self.names = names
        self.leading: Sequence[ir.Type] = [self.mlir.type(NUMBER)] * len(names)

    def define(self, *args: Any, **options: Any) -> Any:
        """Emit a function, whose leading arguments are marked."""
        function = super().define(*args, **options)
        self.mark(function, self.names)
        return function

    def mark(self, function: Any, names: Sequence[str]) -> None:
        """Mark the first arguments of a function as global constants of these names."""
        count = len(function.regions[0].blocks[0].arguments)
        each = [f'{{jax.global_constant = "{name}"}}' for name in names] + ["{}"] * (count - len(names))
        function.attributes["arg_attrs"] = self.mlir.parse(f"[{', '.join(each)}]")

    def context(self, block: ir.Block, scope: str, prefix: str) -> Context:
        made = self.context_type(self, self.mlir, block, scope, prefix)
        made.leading = list(block.arguments)[: len(self.names)]
        return made
