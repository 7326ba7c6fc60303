"""The context of a lowering rule, by JAX's names."""
from __future__ import annotations

from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.primitive import Primitive


class ModuleContext:
    """The module that is being made."""

    def __init__(self, ctx: Any):
        self._ctx = ctx

    @property
    def context(self) -> Any:
        return self._ctx.mlir.context

    @property
    def platforms(self) -> tuple[str, ...]:
        return (self._ctx.platform,)

    def add_keepalive(self, value: Any) -> None:
        """Nothing to do: the program keeps its Python functions alive."""


class LoweringRuleContext:
    """What a lowering rule knows of its equation; `of_xlamini` is the context that rules of xlamini take."""

    def __init__(self, ctx: Any, primitive: Primitive):
        self.of_xlamini, self.primitive = ctx, primitive
        self.module_context = ModuleContext(ctx)
        self.avals_in: list[ShapedArray] = ctx.avals_in
        self.avals_out: list[ShapedArray] = ctx.avals_out
        self.tokens_in = self.tokens_out = None
