"""softmax and logsumexp: sums of exponentials without overflow, because the maximum is subtracted first."""
from __future__ import annotations

import math
from typing import Any

from xlamini.core import aval_of, finfo
from xlamini.numpy.arguments import Reduced, as_reduced
from xlamini.numpy.comparison import isfinite, logical_not
from xlamini.numpy.complex_parts import real
from xlamini.numpy.repeating import broadcast_arrays
from xlamini.numpy.selection import where as choose
from xlamini.primitives import (
    abs,
    broadcasted,
    expand_dims,
    in_dtype,
    is_complex,
    promoted_inexact,
    sign,
    stop_gradient,
)
from xlamini.primitives.collectives.reductions import pmax, psum
from xlamini.primitives.elementwise import exponential
from xlamini.primitives.reductions.reductions import reduce_max, wide_sum
from xlamini.primitives.reductions.softmax import rounded_in_difference, softmax_p
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, AxisLike


@composite(static=("axis",))
def softmax(x: ArrayLike, axis: AxisLike = -1, where: ArrayLike | None = None) -> Array:
    """`exp(x)` over its sum along an axis, several, or all: positive numbers that sum to 1.

    Elements where `where` does not hold are left out, and are 0 in the result.

    >>> softmax(xlamini.numpy.zeros(2))
    Array([0.5, 0.5], dtype=float32)
    """
    array, axes = _prepared("softmax", x, axis, where)
    if not axes.names:
        return _held(where, softmax_p.bind(array, axes=axes.dims), 0)
    powers = exponential.exp(array - _largest(array, axes))
    return _held(where, powers / _summed(powers, axes), 0)


@composite(static=("axis",))
def log_softmax(x: ArrayLike, axis: AxisLike = -1, where: ArrayLike | None = None) -> Array:
    """The logarithm of `softmax`, without its underflow; minus infinity where `where` does not hold.

    >>> log_softmax(xlamini.numpy.zeros(2))
    Array([-0.6931472, -0.6931472], dtype=float32)
    """
    array, axes = _prepared("log_softmax", x, axis, where)
    shifted = _rounded(array) - _largest(array, axes)
    return _held(where, shifted - exponential.log(_summed(exponential.exp(shifted), axes)), -math.inf)


@composite(static=("axis", "keepdims", "return_sign"))
def logsumexp(
    a: ArrayLike,
    axis: AxisLike = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Any:
    """`log(sum(b * exp(a)))` along an axis, several, or all; minus infinity for no element.

    An element whose weight in `b` is 0 is left out, even if it is infinite or NaN. With `return_sign` the logarithm of
    the sum's absolute value, and its sign (for complex numbers its phase); without, NaN for a negative sum. Elements
    where `where` does not hold are left out.

    >>> logsumexp(xlamini.numpy.array([1000.0, 1000.0]))
    Array(1000.6932, dtype=float32)
    """
    a, weights = (a, None) if b is None else broadcast_arrays(*promoted_inexact("logsumexp", a, b))
    array, axes = _prepared("logsumexp", a, axis, where)
    found = real(_largest(array if weights is None else _left_out(array, weights == 0), axes))
    largest = choose(isfinite(found), found, in_dtype(0, found.dtype))
    shifted = _rounded(array) - in_dtype(largest, array.dtype)
    if weights is not None:
        # The others of weight 0 stay: the derivative in their weight is not 0.
        shifted = _left_out(shifted, (weights == 0) & ((found == -math.inf) | _overflows(shifted)))
    powers = exponential.exp(shifted)
    total = _summed(powers if weights is None else weights * powers, axes)
    signs = sign(total)
    size = abs(total) if return_sign else total
    none = found == -math.inf  # the slopes of the logarithm of 0 are infinite, those of the exponentials 0
    out = choose(none, -math.inf, exponential.log(choose(none, 1, size)) + largest)
    if not keepdims:
        shape = tuple(n for d, n in enumerate(array.shape) if d not in axes.dims)
        out, signs = out.reshape(shape), signs.reshape(shape)
    return (out, signs) if return_sign else out


@composite(static=("axis", "keepdims"))
def logmeanexp(
    x: ArrayLike, axis: AxisLike = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """The logarithm of the mean of `exp(x)` along an axis, several, or all, without overflow.

    Args:
      x: an array; integers become floats.
      axis: an axis, a tuple of axes, or None for all.
      where: a mask; what is not in it counts neither in the sum nor in the number of elements.
      keepdims: whether the axes stay, with size 1.

    >>> nn.logmeanexp(jnp.array([1000.0, 1000.0]))
    Array(1000., dtype=float32)
    >>> nn.logmeanexp(jnp.array([[0.0, 5.0], [2.0, 7.0]]), axis=1, where=jnp.array([True, False]))
    Array([0., 2.], dtype=float32)
    """
    shape = aval_of(x).shape
    axes = as_reduced("logmeanexp", axis, len(shape))
    total = logsumexp(x, axis, keepdims=keepdims, where=where)
    if where is None:
        return total - math.log(axes.count(shape) or math.nan)
    held, _ = broadcasted("logmeanexp", choose(where, 1.0, 0.0), x)
    count = _summed(in_dtype(held, aval_of(total).dtype), axes)
    return total - exponential.log(count.reshape(total.shape))


def _prepared(name: str, x: Any, axis: AxisLike, where: Any) -> tuple[Any, Reduced]:
    """The operand as floats, minus infinity where it is left out, and the axes."""
    (x,) = promoted_inexact(name, x)
    if where is not None:
        x = _left_out(x, logical_not(where))
    return x, as_reduced(name, axis, aval_of(x).ndim)


def _held(where: Any, out: Any, otherwise: float) -> Any:
    """The result where `where` holds, `otherwise` in the rest: NaN if it holds nowhere along the axes."""
    return out if where is None else choose(where, out, in_dtype(otherwise, aval_of(out).dtype))


def _largest(x: Any, axes: Reduced) -> Any:
    """The maximum along the axes, with keepdims; a constant subtracted everywhere has no derivative."""
    largest = stop_gradient(reduce_max(x, axes.dims))
    return expand_dims(pmax(largest, axes.names) if axes.names else largest, axes.dims)


def _rounded(x: Any) -> Any:
    """x, whose difference from its maximum is exact: see `rounded_in_difference`."""
    return x if is_complex(x) else rounded_in_difference(x)


def _summed(x: Any, axes: Reduced) -> Any:
    total = wide_sum(x, axes.dims)
    return expand_dims(psum(total, axes.names) if axes.names else total, axes.dims)


def _left_out(x: Any, mask: Any) -> Any:
    """The exponents with minus infinity where the mask holds."""
    return choose(mask, in_dtype(-math.inf, x.dtype), x)


def _overflows(exponents: Any) -> Any:
    """A mask of the exponents whose power is infinite or NaN."""
    return ~(exponents < math.log(float(finfo(exponents.dtype).max)))
