"""What the rules `vjp_bwd` and `transpose` put cotangents into, one for each argument."""
from __future__ import annotations

from typing import Any

from xlamini.core import ShapedArray, Zero, cotangent_aval, is_zero
from xlamini.core.hi_types import as_written
from xlamini.primitives.tangent_ops import add_tangents


class Accumulator:
    """The cotangent of one leaf of an argument: `accum(ct)` adds to it; None and symbolic zeros add nothing."""

    def __init__(self, aval: ShapedArray):
        self._aval = aval
        self.total: Any = Zero(cotangent_aval(aval))

    aval = property(lambda self: as_written(self._aval))

    def accum(self, ct: Any) -> None:
        """Add a cotangent."""
        if ct is not None and not is_zero(ct):
            self.total = add_tangents(self.total, ct)

    def __repr__(self) -> str:
        return f"Accumulator({self.aval})"
