"""softmax: exponentials over their sum, a primitive for the sake of its derivative, `y * (t - sum(y * t))`.

That of the formula divides by the sum in two places, each over the whole array. XLA computes both again inside every
product that takes the result, as the two of attention's gradient do.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn

from xlamini.core import Avals, Axis, Cost, Params, Primitive, Shape, ShapedArray, Values, aval_of
from xlamini.core.dtypes.limits import finfo
from xlamini.core.program.form import Form, Platform
from xlamini.core.program.memory import READ
from xlamini.core.sharding.facet import same_dimensions
from xlamini.primitives.base.dtype_kinds import COMPLEX, FLOAT, is_complex
from xlamini.primitives.base.elementwise import mul
from xlamini.primitives.elementwise.arithmetic import bounded, div, sub
from xlamini.primitives.elementwise.exponential import TRANSCENDENTAL, exp
from xlamini.primitives.reductions.ordering import lowest
from xlamini.primitives.reductions.reductions import check_kind, reduce_max, wide_sum
from xlamini.primitives.shape.shape import broadcast_in_dim

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


class Softmax(Primitive):
    name = "softmax"
    sharding: Sharding = same_dimensions()
    memory = READ
    start: Callable[[Any], Any] = staticmethod(lowest)
    """Makes, from a dtype, the element that changes no other's result."""

    def shape_rule(self, x: ShapedArray, *, axes: Shape) -> ShapedArray:
        check_kind(self.name, x, FLOAT | COMPLEX)
        return x

    def jvp(self, primals: Values, tangents: Values, *, axes: Shape) -> Any:
        y, (tangent,) = self.bind(*primals, axes=axes), tangents
        return y, mul(y, sub(tangent, _everywhere(wide_sum(mul(y, tangent), axes), axes, aval_of(y))))

    def transpose(self, ct: Any, x: Any, **params: Any) -> NoReturn:
        raise AssertionError("softmax is not linear, and its derivative is made of other primitives")

    def batch(self, axis: Axis, operands: Any, dims: Any, *, axes: Shape) -> Any:
        (x,), (dim,) = operands, dims
        return self.bind(x, axes=tuple(a + (a >= dim) for a in axes)), dim

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form:
        return Form(partial(_formula, **params))

    def cost(self, x: ShapedArray, *, axes: Shape) -> Cost:
        return Cost(x.size * (TRANSCENDENTAL + 4), 2 * x.nbytes)


softmax_p: Final = Softmax()


# --- helpers


def _formula(x: Any, axes: Shape) -> Any:
    aval = aval_of(x)
    whole = x if is_complex(x) else rounded_in_difference(x)
    powers = exp(sub(whole, _everywhere(reduce_max(x, axes), axes, aval)))
    return div(powers, _everywhere(wide_sum(powers, axes), axes, aval))


def rounded_in_difference(x: Any) -> Any:
    """x up to infinity, whose difference from its maximum is infinite all the same.

    Where x is a product, LLVM makes one fused operation of product and difference, which does not round the product,
    as that in the maximum is. Of large numbers the rounding error alone is far from 0. Nothing fuses with a minimum.
    """
    return bounded(x, low=None, high=float(finfo(aval_of(x).dtype).max))


def _everywhere(x: Any, axes: Shape, aval: ShapedArray) -> Any:
    """The result of a reduction along the axes, for each element of an array of this type."""
    return broadcast_in_dim(x, aval.shape, [d for d in range(aval.ndim) if d not in axes])
