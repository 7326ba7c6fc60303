"""The generator of random bits of a TPU's core, in Mosaic."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.lowering.context import Value


class GeneratorRules:
    """The generator, whose state the core keeps."""

    def __init__(self, ctx: Any):
        self.ctx = ctx

    def seed(self, seeds: Sequence[Value]) -> None:
        """Seed it with int32s."""
        self.ctx.emit("tpu.prng_set_seed_32", seeds, [])

    def bits(self, shape: Sequence[int]) -> Value:
        """An array of random int32s."""
        return self.ctx.emit("tpu.prng_random_bits", [], [self.ctx.mlir.vector(shape, self.ctx.int32)])[0]
