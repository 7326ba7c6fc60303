"""Elementwise operations that are linear in all their operands together."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xlamini.core import Values, Zero, aval_of, is_differentiable, is_zero, literal, tangent_aval
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.core.sharding.facet import broadcast_dimensions
from xlamini.core.sharding.partial_sums import JOINTLY
from xlamini.primitives.base.broadcasting import spread
from xlamini.primitives.base.elementwise import Elementwise

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


class JointlyLinear(Elementwise):
    """An operation that is jointly linear in all its operands: their tangents pass through it as they do."""

    sharding: Sharding = broadcast_dimensions(linear=JOINTLY)
    checks = NO_NEW_NAN

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        out = self.bind(*primals, **params)
        aval = tangent_aval(aval_of(out))
        if all(map(is_zero, tangents)) or not is_differentiable(aval):
            return out, Zero(aval)
        numbers = [spread(literal(0, t.aval.dtype), t.aval) if is_zero(t) else t for t in tangents]
        return out, self.bind(*numbers, **params)
