"""Reductions: an associative operation over some dimensions. `reduce_sum_p` is in shape.py, beside broadcasting.

A member of the family states its StableHLO op, the number it starts from, the dtypes it accepts, and its derivative.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn

from xlamini.core import Axis, Cost, Primitive, Shape, ShapedArray, Values, aval_of, iinfo, literal
from xlamini.core.errors import InconclusiveDimensionOperation
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.core.program.memory import READ
from xlamini.core.sharding.facet import reduced_dimensions
from xlamini.core.sizes.expression import is_symbolic_shape
from xlamini.primitives.base.dtype_kinds import ANY, BOOL, INTEGER, NUMERIC, Kinds, kind_of
from xlamini.primitives.base.elementwise import add_any, mul
from xlamini.primitives.base.out_sharding import in_sharding, summed_in_sharding
from xlamini.primitives.base.promotion import accumulator
from xlamini.primitives.base.tangent_ops import zeros
from xlamini.primitives.elementwise.arithmetic import max, min
from xlamini.primitives.elementwise.comparison import eq
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.reductions.ordering import highest, lowest
from xlamini.primitives.shape.pad import pad
from xlamini.primitives.shape.shape import broadcast_in_dim, reduce_sum_p, reduced, reshape, sum_over
from xlamini.primitives.shape.slice import slice_in_dim
from xlamini.runtime import Array

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


def reduce_sum(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The sum over `axes`, in the operand's dtype; TypeError for booleans.

    >>> reduce_sum(xlamini.numpy.ones((2, 3)), (0,))
    Array([2., 2., 2.], dtype=float32)
    """
    if out_sharding is not None:
        return summed_in_sharding(out_sharding, reduce_sum, operand, axes)
    check_kind("reduce_sum", aval_of(operand), NUMERIC)
    return reduce_sum_p.bind(operand, axes=tuple(axes))


def reduce_prod(operand: Any, axes: Sequence[int]) -> Array:
    """The product over `axes`, in the operand's dtype; TypeError for booleans.

    >>> lax.reduce_prod(jnp.array([3, 1, 2]), (0,))
    Array(6, dtype=int32)
    """
    return reduce_prod_p.bind(operand, axes=tuple(axes))


def reduce_max(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The largest element over `axes`; NaN if one is NaN; the dtype's lowest value where there is no element.

    >>> reduce_max(xlamini.numpy.array([[1, 5], [3, 2]]), (1,))
    Array([5, 3], dtype=int32)
    """
    if out_sharding is not None:
        return in_sharding(out_sharding, reduce_max, operand, axes)
    return reduce_max_p.bind(operand, axes=tuple(axes))


def reduce_min(operand: Any, axes: Sequence[int], *, out_sharding: Any = None) -> Array:
    """The smallest element over `axes`; NaN if one is NaN; the dtype's highest value where there is no element.

    >>> lax.reduce_min(jnp.array([3, 1, 2]), (0,))
    Array(1, dtype=int32)
    """
    if out_sharding is not None:
        return in_sharding(out_sharding, reduce_min, operand, axes)
    return reduce_min_p.bind(operand, axes=tuple(axes))


def reduce_and(operand: Any, axes: Sequence[int]) -> Array:
    """The bits that all elements over `axes` have; for booleans, whether all hold.

    >>> lax.reduce_and(jnp.array([True, False]), (0,))
    Array(False, dtype=bool)
    """
    return reduce_and_p.bind(operand, axes=tuple(axes))


def reduce_or(operand: Any, axes: Sequence[int]) -> Array:
    """The bits that some element over `axes` has; for booleans, whether one holds.

    >>> lax.reduce_or(jnp.array([True, False]), (0,))
    Array(True, dtype=bool)
    """
    return reduce_or_p.bind(operand, axes=tuple(axes))


def reduce_xor(operand: Any, axes: Sequence[int]) -> Array:
    """The bits that an odd number of elements over `axes` have; for booleans, whether an odd number holds.

    >>> lax.reduce_xor(jnp.array([6, 3]), (0,))
    Array(5, dtype=int32)
    """
    return reduce_xor_p.bind(operand, axes=tuple(axes))


class Reduction(Primitive):
    """`start` makes, from a dtype, the number that changes nothing."""

    accepts: Kinds
    hlo: str
    start: Callable[[Any], Any]

    sharding: Sharding = reduced_dimensions("axes")
    memory = READ

    def __init__(self, name: str, *, hlo: str, start: Callable[[Any], Any], accepts: Kinds):
        self.hlo, self.start, self.accepts = hlo, start, accepts
        super().__init__(name)

    def shape_rule(self, x: ShapedArray, *, axes: Shape) -> ShapedArray:
        check_kind(self.name, x, self.accepts)
        return reduced(x, axes, self.name)

    def jvp(self, primals: Values, tangents: Values, *, axes: Shape) -> Any:
        (x,), (tangent,) = primals, tangents
        out = self.bind(x, axes=axes)
        return out, self.tangent(x, tangent, out, axes)

    def tangent(self, x: Any, tangent: Any, out: Any, axes: Shape) -> Any:
        """The tangent of the result."""
        raise AssertionError(f"{self.name} takes no floating-point operand, so no tangent can reach it")

    def transpose(self, ct: Any, x: Any, **params: Any) -> NoReturn:
        raise AssertionError(f"{self.name} is not linear, and its derivative is made of other primitives")

    def batch(self, axis: Axis, operands: Any, dims: Any, *, axes: Shape) -> Any:
        (x,), (dim,) = operands, dims
        moved = tuple(a + (a >= dim) for a in axes)
        return self.bind(x, axes=moved), dim - sum(a < dim for a in moved)

    def lower(self, ctx: Any, x: Any, *, axes: Shape) -> Any:
        return ctx.reduce(self.hlo, x, self.start(ctx.aval_out.dtype), axes)

    def cost(self, x: ShapedArray, *, axes: Shape) -> Cost:
        return Cost(x.size, x.nbytes + self.shape_rule(x, axes=axes).nbytes)


class ReduceProduct(Reduction):
    def jvp(self, primals: Values, tangents: Values, *, axes: Shape) -> Any:
        """The product by halves and its tangent, which is right beside zeros too, where `product / x` is not."""
        (x,), (tangent,) = primals, tangents
        if aval_of(x).size == 0:
            return (out := self.bind(x, axes=axes)), zeros(aval_of(out))
        shape = self.shape_rule(aval_of(x), axes=axes).shape
        if is_symbolic_shape(aval_of(x).shape[axis] for axis in axes):
            raise InconclusiveDimensionOperation(
                f"the derivative of {self.name} along axes {axes} of {aval_of(x).str_short()}, of symbolic size, is a "
                "program that depends on the size; write the product as a lax.scan, or export for a number"
            )
        for axis in axes:
            while aval_of(x).shape[axis] > 1:
                (x, y), (tx, ty) = _halves(x, axis, 1), _halves(tangent, axis, 0)
                x, tangent = mul(x, y), add_any(mul(tx, y), mul(ty, x))
        return reshape(x, shape), reshape(tangent, shape)


class ReduceExtremum(Reduction):
    checks = NO_NEW_NAN

    def tangent(self, x: Any, tangent: Any, out: Any, axes: Shape) -> Any:
        """The tangent of the element that is the extremum; where several are, the mean of theirs."""
        aval = aval_of(x)
        kept = [d for d in range(aval.ndim) if d not in axes]
        chosen = eq(x, broadcast_in_dim(out, aval.shape, kept))
        total = sum_over(where(chosen, tangent, literal(0, aval.dtype)), axes)
        return total / sum_over(convert(chosen, aval.dtype), axes)

    def lower(self, ctx: Any, x: Any, *, axes: Shape) -> Any:
        scalar = ctx.aval_out.update(shape=())
        larger_or_smaller = max if self.start is lowest else min
        body = ctx.scalar_region([scalar] * 2, lambda a, b: [ctx.inline(larger_or_smaller, a, b, avals=[scalar] * 2)])
        start = ctx.constant(self.start(scalar.dtype), scalar)
        return ctx.op("stablehlo.reduce", x, start, regions=[body], dimensions=axes)


def wide_sum(x: Any, axes: Sequence[int]) -> Any:
    """The sum over the axes in the elements' dtype; that of halves is rounded once, at the end."""
    dtype = aval_of(x).dtype
    return convert(sum_over(convert(x, accumulator(dtype)), axes), dtype)


def check_kind(name: str, aval: ShapedArray, accepts: Kinds) -> None:
    """TypeError, naming the function, for a dtype of another kind."""
    kind = kind_of(aval.dtype)
    if kind is None or kind not in accepts:
        accepted = ", ".join(k.name.lower() for k in accepts if k.name)
        raise TypeError(f"{name} does not accept dtype {aval.dtype.name}; it takes {accepted} (convert with .astype)")


def _halves(x: Any, axis: int, filler: int) -> tuple[Any, Any]:
    """Both halves along an axis; the second is padded where the size is odd."""
    aval = aval_of(x)
    n = aval.shape[axis]
    middle = (n + 1) // 2
    config = [(0, 2 * middle - n if d == axis else 0, 0) for d in range(aval.ndim)]
    second = slice_in_dim(x, middle, n, axis=axis)
    return slice_in_dim(x, 0, middle, axis=axis), pad(second, literal(filler, aval.dtype, aval.weak_type), config)


def _all_bits(dtype: Any) -> int:
    return True if kind_of(dtype) is BOOL else -1 if iinfo(dtype).min < 0 else iinfo(dtype).max


reduce_prod_p: Final = ReduceProduct("reduce_prod", hlo="stablehlo.multiply", start=lambda dtype: 1, accepts=NUMERIC)
reduce_max_p: Final = ReduceExtremum("reduce_max", hlo="stablehlo.maximum", start=lowest, accepts=ANY)
reduce_min_p: Final = ReduceExtremum("reduce_min", hlo="stablehlo.minimum", start=highest, accepts=ANY)
reduce_and_p: Final = Reduction("reduce_and", hlo="stablehlo.and", start=_all_bits, accepts=INTEGER | BOOL)
reduce_or_p: Final = Reduction("reduce_or", hlo="stablehlo.or", start=lambda dtype: 0, accepts=INTEGER | BOOL)
reduce_xor_p: Final = Reduction("reduce_xor", hlo="stablehlo.xor", start=lambda dtype: 0, accepts=INTEGER | BOOL)
