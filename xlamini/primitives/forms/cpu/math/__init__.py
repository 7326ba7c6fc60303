"""CPU substitutes for operations that XLA's CPU backend computes one element at a time, or inexactly.

Each file has one family of functions. A formula is a Python function of simpler operations, all of which LLVM
vectorises; the decorator `vectorised` makes a form of it, which an elementwise operation names as its `on_cpu`:

    @elementwise(hlo="stablehlo.sine", on_cpu=formula("circular.sine"), accepts=FLOAT | COMPLEX)
    def sin(x): ...

Others are here because XLA's op loses many digits in float64; `formula(path, DOUBLE)` leaves it the other floats.
"""
from __future__ import annotations

import importlib
from dataclasses import dataclass

from xlamini.core import Primitive, ShapedArray
from xlamini.core.program.form import Form

SINGLE, DOUBLE = 1, 2
"""Float32 and narrower floats, float64."""


@dataclass(frozen=True)
class formula:
    """The form `file.name` of a file here, which is imported when the first program is specialized to it."""

    path: str
    floats: int = SINGLE | DOUBLE
    """For which floats the operation takes it."""

    def form(self, primitive: Primitive, aval: ShapedArray) -> Form | None:
        """The form of an operation with results of this type; None for other floats, and where XLA's op is better."""
        if not self.floats & (SINGLE if aval.dtype.itemsize < 8 else DOUBLE):
            return None
        file, _, name = self.path.partition(".")
        return getattr(importlib.import_module(f"{__name__}.{file}"), name)(primitive, aval)
