"""CPU substitutes for operations that XLA's CPU backend computes one element at a time, or inexactly.

Each file has one family of functions. A formula is a Python function of simpler operations, all of which LLVM
vectorises; the decorator `vectorised` makes a lowering of it, which an elementwise operation names as its `on_cpu`:

    @elementwise(hlo="stablehlo.sine", on_cpu=formula("circular.sine"), accepts=FLOAT | COMPLEX)
    def sin(x): ...

Others are here because XLA's op loses many digits in float64; `formula(path, DOUBLE)` leaves it the other floats.
"""
from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from xlamini.core.primitive import HAS_DOUBLE_CPU_LOWERING, HAS_SINGLE_CPU_LOWERING

SINGLE, DOUBLE = HAS_SINGLE_CPU_LOWERING, HAS_DOUBLE_CPU_LOWERING
"""Float32 and narrower floats, float64."""


@dataclass(frozen=True)
class formula:
    """The lowering `file.name` of a file here, which is imported when the first program is lowered with it."""

    path: str
    traits: int = SINGLE | DOUBLE
    """For which floats the operation takes it."""

    def __call__(self, ctx: Any, *operands: Any) -> Any:
        file, _, name = self.path.partition(".")
        return getattr(importlib.import_module(f"{__name__}.{file}"), name)(ctx, *operands)
