"""euclidean_norm: the square root of the sum of the squared sizes of elements, without overflow or underflow.

Squares are summed as they are, and where that sum is out of range, those of elements divided or multiplied by a power
of two. Accelerators take the three sums in one pass over the elements. A CPU takes the first one, and the others in a
branch that hardly any program ever enters.

The derivative in an element is its share of the length; that at zero is 0, the smallest of the subgradients.
"""
from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np

from xlamini.core import Avals, Params, ShapedArray, aval_of, literal
from xlamini.core.dtypes.limits import finfo
from xlamini.core.program.form import Form, Platform
from xlamini.primitives.base.dtype_kinds import COMPLEX, FLOAT, is_complex, kind_of
from xlamini.primitives.base.elementwise import mul
from xlamini.primitives.base.promotion import accumulator
from xlamini.primitives.elementwise.arithmetic import div
from xlamini.primitives.elementwise.bitwise import bitwise_or
from xlamini.primitives.elementwise.comparison import eq, lt
from xlamini.primitives.elementwise.complex import conj, imag, part_dtype, real
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.power import sqrt
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.forms.parts import case
from xlamini.primitives.placement.optimization_barrier import optimization_barrier
from xlamini.primitives.reductions.reductions import Reduction, reduce_or
from xlamini.primitives.shape.shape import broadcast_in_dim, sum_over

_SCALE = {4: 2.0**80, 8: 2.0**600}
"""What brings numbers whose squares are out of range into the middle of it, by the bytes of a float."""


def euclidean_norm(x: Any, axes: Sequence[int]) -> Any:
    """The Euclidean norm over `axes`, which is real.

    >>> euclidean_norm(jnp.array([3e30, 4e30]), (0,))
    Array(5.e+30, dtype=float32)
    """
    dtype = aval_of(x).dtype
    wide = accumulator(dtype)
    return convert(euclidean_norm_p.bind(convert(x, wide), axes=tuple(axes)), part_dtype(dtype))


class EuclideanNorm(Reduction):
    """Of floats of at least 32 bits: narrower ones are rounded after the root, not before it."""

    def shape_rule(self, x: ShapedArray, *, axes: Any) -> ShapedArray:
        return super().shape_rule(x, axes=axes).update(dtype=part_dtype(x.dtype))

    def tangent(self, x: Any, tangent: Any, out: Any, axes: Any) -> Any:
        aval = aval_of(x)
        kept = [d for d in range(aval.ndim) if d not in axes]
        length = where(eq(out, literal(0, aval_of(out).dtype)), literal(np.inf, aval_of(out).dtype), out)
        share = div(x, convert(broadcast_in_dim(length, aval.shape, kept), aval.dtype))
        if kind_of(aval.dtype) is not COMPLEX:
            return sum_over(mul(share, tangent), axes)
        return sum_over(real(mul(conj(share), tangent)), axes)

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form:
        return Form(partial(_by_branch if platform.name == "cpu" else _by_three_sums, **params))


euclidean_norm_p: Final = EuclideanNorm("euclidean_norm", hlo="", start=lambda dtype: 0, accepts=FLOAT | COMPLEX)


# --- forms


def _by_branch(x: Any, *, axes: Any) -> Any:
    total = _sum_of_squares(x, axes)
    roots = (lambda total, x: sqrt(total), partial(_in_range, axes=axes))
    return case(_any_out_of_range(total), roots, total, x)


def _by_three_sums(x: Any, *, axes: Any) -> Any:
    return _in_range(_sum_of_squares(x, axes), x, axes)


def _sum_of_squares(x: Any, axes: Any, scale: float = 1) -> Any:
    total: Any = None
    for part in (real(x), imag(x)) if is_complex(x) else (x,):
        part = _scaled(part, scale) if scale != 1 else part
        total = mul(part, part) if total is None else total + mul(part, part)
    return sum_over(total, axes)


def _scaled(x: Any, scale: float) -> Any:
    """Numbers times a scale that XLA does not know: else it makes `x * x * scale ** 2` of some squares of products.

    That scale is infinite or 0.
    """
    factor = optimization_barrier(broadcast_in_dim(literal(scale, aval_of(x).dtype), (), ()))
    return mul(x, factor)


def _least(dtype: Any) -> Any:
    """Above it, elements whose squares are no normal numbers do not count."""
    limits = finfo(dtype)
    return literal(float(limits.tiny) / float(limits.eps) ** 2, dtype)


def _in_range(total: Any, x: Any, axes: Any) -> Any:
    """The root of the sum of squares `total`, or where that is out of range of one that is not."""
    dtype = aval_of(total).dtype
    scale = _SCALE[dtype.itemsize]
    large = sqrt(_sum_of_squares(x, axes, 1 / scale)) * literal(scale, dtype)
    small = sqrt(_sum_of_squares(x, axes, scale)) * literal(1 / scale, dtype)
    return where(lt(total, _least(dtype)), small, where(lt(total, literal(np.inf, dtype)), sqrt(total), large))


def _any_out_of_range(total: Any) -> Any:
    """1 or 0, as an int32. NaN is in range, as its root is right."""
    dtype = aval_of(total).dtype
    out_of_range = bitwise_or(lt(total, _least(dtype)), eq(total, literal(np.inf, dtype)))
    return convert(reduce_or(out_of_range, range(aval_of(total).ndim)), np.dtype(np.int32))
