"""pad: rows of one value around and between an array's elements, or, where negative, elements cut off.

With it the derivative of `slice` puts a cotangent back to where it was cut from.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xlamini.core import Primitive, ShapedArray, ShapeError, Values, aval_of, is_linear, literal
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.core.program.memory import MOVED
from xlamini.core.sharding.facet import same_dimensions
from xlamini.core.sharding.partial_sums import JOINTLY
from xlamini.core.sizes.expression import as_size, max_size
from xlamini.primitives.base.batch_ops import with_batch_first
from xlamini.primitives.base.elementwise import like_dtypes, neg
from xlamini.primitives.base.tangent_ops import add_tangents, full, instantiated
from xlamini.primitives.elementwise.select import select_n
from xlamini.primitives.placement.reshard import reshard_as
from xlamini.primitives.shape.shape import broadcast_in_dim, moveaxis, sum_over
from xlamini.primitives.shape.slice import slice
from xlamini.runtime import Array

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


Config = tuple[tuple[int, int, int], ...]
_BOOL = np.dtype(bool)


def pad(operand: Any, padding_value: Any, padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """Put `padding_value` before, after and between the elements of `operand`.

    `padding_config` has for each dimension how many to put before, after and between neighbours; a negative number
    before or after cuts off as many. Raises ShapeError where that does not fit, TypeError for differing dtypes.

    >>> pad(xlamini.numpy.arange(1, 3), 0, [(1, 0, 1)])
    Array([0, 1, 0, 2], dtype=int32)
    """
    config = tuple(tuple(map(as_size, each)) for each in padding_config)
    x, value = like_dtypes((operand, padding_value))
    split = aval_of(x).explicit_sharding
    if split is not None and split.unreduced:
        value = reshard_as(value, split.of_scalar())
    return pad_p.bind(x, value, padding_config=config)


class Pad(Primitive):
    name = "pad"
    sharding: Sharding = same_dimensions(linear=JOINTLY)
    memory = MOVED
    checks = NO_NEW_NAN

    def shape_rule(self, x: ShapedArray, value: ShapedArray, *, padding_config: Config) -> ShapedArray:
        if x.dtype != value.dtype or value.shape:
            raise TypeError(
                f"pad: padding_value must be a scalar of dtype {x.dtype}, as the operand is, but is "
                f"{value.str_short()}; convert it with .astype"
            )
        fits = len(padding_config) == x.ndim and all(len(each) == 3 and each[2] >= 0 for each in padding_config)
        shape = _padded(x.shape, padding_config) if fits else (-1,)
        if any(n < 0 for n in shape):
            raise ShapeError(
                f"pad: padding_config {padding_config} does not fit {x.str_short()}; it takes (before, after, between) "
                "for each dimension, between not negative, and may not cut off more than there is"
            )
        # XLA pads first and cuts off afterwards, so the array in between needs a valid size too.
        first = tuple((max_size(lo, 0), max_size(hi, 0), gap) for lo, hi, gap in padding_config)
        x.update(shape=_padded(x.shape, first))
        return x.update(shape=shape, weak_type=x.weak_type and value.weak_type)

    def jvp(self, primals: Values, tangents: Values, *, padding_config: Config) -> Any:
        out = self.bind(*primals, padding_config=padding_config)
        return out, self.bind(*map(instantiated, tangents), padding_config=padding_config)

    def transpose(self, ct: Any, x: Any, value: Any, *, padding_config: Config) -> Values:
        aval = aval_of(ct)
        outer = tuple((-lo, -hi, 0) for lo, hi, _ in padding_config)
        steps = [between + 1 for _, _, between in padding_config]
        back = self.bind(ct, literal(0, aval.dtype), padding_config=outer)
        back = slice(back, [0] * aval.ndim, aval_of(back).shape, steps)
        if not is_linear(value):
            return [back, None]
        total = add_tangents(_sum(ct), neg(_sum(back)))
        return [back if is_linear(x) else None, total]

    def batch(self, axis: Any, operands: Any, dims: Any, *, padding_config: Config) -> Any:
        config = ((0, 0, 0), *padding_config)
        if dims[1] is None:
            return self.bind(moveaxis(operands[0], dims[0], 0), operands[1], padding_config=config), 0
        x, values = with_batch_first(operands, dims, axis.size)
        aval = aval_of(x)
        padded = self.bind(x, literal(0, aval.dtype), padding_config=config)
        inside = full(aval.update(dtype=_BOOL, weak_type=False), True)
        inside = self.bind(inside, literal(False, _BOOL), padding_config=config)
        return select_n(inside, broadcast_in_dim(values, aval_of(padded).shape, (0,)), padded), 0

    def lower(self, ctx: Any, x: Any, value: Any, *, padding_config: Config) -> Any:
        low, high, interior = zip(*padding_config, strict=True) if padding_config else ((), (), ())
        return ctx.op(
            "stablehlo.pad", x, value, edge_padding_low=low, edge_padding_high=high, interior_padding=interior
        )


pad_p: Final = Pad()


def _padded(shape: Sequence[int], config: Sequence[tuple[int, int, int]]) -> tuple[int, ...]:
    return tuple(
        lo + n + hi + max_size(n - 1, 0) * between for n, (lo, hi, between) in zip(shape, config, strict=True)
    )


def _sum(x: Any) -> Any:
    return sum_over(x, range(aval_of(x).ndim))
