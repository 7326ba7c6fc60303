"""Activation functions, elementwise but for `glu`. Values and derivatives are finite wherever they can be.

A branch that is not chosen is computed all the same, and its infinite derivative times zero would be NaN: so the
argument of such a branch is replaced by a harmless one first.
"""
from __future__ import annotations

import math
from typing import Any

from xlamini.core import aval_of
from xlamini.nn import rectifiers, smooth
from xlamini.numpy.arguments import as_axis, as_operand
from xlamini.numpy.exponential import logaddexp
from xlamini.numpy.selection import where
from xlamini.numpy.ufuncs.declaration import Promotion, ufunc, unpromoted
from xlamini.primitives import convert, max, min, promoted, promoted_inexact, slice_in_dim
from xlamini.primitives.base import operators
from xlamini.primitives.elementwise import exponential, hyperbolic
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.staging.trace.tracing import visible
from xlamini.typing import ArrayLike


def _beside(number: float) -> Promotion:
    """The operand in the dtype that it has in arithmetic with a Python number."""
    return lambda name, x: promoted(name, x, number)[:1]


@ufunc(rectifiers.relu, _beside(0))
def relu(x: ArrayLike) -> Array:
    """`max(x, 0)`; its derivative at 0 is 0, and so it is at NaN, which stays NaN.

    >>> relu(xlamini.numpy.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    ...


@ufunc(rectifiers.relu6, _beside(6.0))
def relu6(x: ArrayLike) -> Array:
    """`min(max(x, 0), 6)`; its derivative at 0 and at 6 is 0.

    >>> relu6(jnp.array([-1.0, 2.0, 8.0]))
    Array([0., 2., 6.], dtype=float32)
    """
    ...


@ufunc(lambda x: where(x > 1, 1, where(x < -1, -1, x)))
def hard_tanh(x: ArrayLike) -> Array:
    """`x` between -1 and 1, and the nearer of them outside.

    >>> hard_tanh(jnp.array([-2.0, 0.5, 2.0]))
    Array([-1. ,  0.5,  1. ], dtype=float32)
    """
    ...


@ufunc(lambda x: rectifiers.relu6(x + 3.0) / 6.0)
def hard_sigmoid(x: ArrayLike) -> Array:
    """A sigmoid made of straight lines: `relu6(x + 3) / 6`.

    >>> hard_sigmoid(jnp.array([-4.0, 0.0, 1.5, 4.0]))
    Array([0.  , 0.5 , 0.75, 1.  ], dtype=float32)
    """
    ...


@ufunc(lambda x: smooth.finite_below(x) * (rectifiers.relu6(x + 3.0) / 6.0))
def hard_silu(x: ArrayLike) -> Array:
    """`x * hard_sigmoid(x)`.

    >>> hard_silu(jnp.array([-4.0, 0.0, 3.0]))
    Array([-0.,  0.,  3.], dtype=float32)
    """
    ...


hard_swish = hard_silu


@ufunc(hyperbolic.logistic, promoted_inexact)
def sigmoid(x: ArrayLike) -> Array:
    """`1 / (1 + exp(-x))`.

    >>> sigmoid(jnp.array([-100.0, 0.0, 100.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    ...


@ufunc(smooth.silu, promoted_inexact)
def silu(x: ArrayLike) -> Array:
    """`x * sigmoid(x)`.

    >>> silu(jnp.array([-100.0, 0.0, 100.0]))
    Array([ -0.,   0., 100.], dtype=float32)
    >>> xlamini.grad(silu)(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """
    ...


swish = silu


@ufunc(lambda x: logaddexp(x, 0.0), promoted_inexact)
def softplus(x: ArrayLike) -> Array:
    """`log(1 + exp(x))`, without overflow.

    >>> softplus(1000.0)
    Array(1000., dtype=float32, weak_type=True)
    """
    ...


@ufunc(lambda x: -logaddexp(-x, 0.0), promoted_inexact)
def log_sigmoid(x: ArrayLike) -> Array:
    """`log(sigmoid(x))`, without overflow.

    >>> log_sigmoid(jnp.array([-1000.0, 1000.0]))
    Array([-1000.,    -0.], dtype=float32)
    """
    ...


@ufunc(smooth.soft_sign, lambda name, x: promoted_inexact(name, x, 1)[:1])
def soft_sign(x: ArrayLike) -> Array:
    """`x / (|x| + 1)`.

    >>> soft_sign(jnp.array([-3.0, 0.0, 1.0]))
    Array([-0.75,  0.  ,  0.5 ], dtype=float32)
    """
    ...


@ufunc(lambda x: smooth.gated(x, smooth.gate_of_mish(x)), promoted_inexact)
def mish(x: ArrayLike) -> Array:
    """`x * tanh(softplus(x))`.

    >>> mish(jnp.array([-100.0, 0.0, 100.0]))
    Array([ -0.,   0., 100.], dtype=float32)
    """
    ...


@composite(static=("approximate",))
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """`x` times the probability that a standard normal number is below it; with `approximate`, by a formula with tanh.

    >>> gelu(1.0, approximate=False)
    Array(0.8413447, dtype=float32)
    """
    (array,) = promoted_inexact("gelu", x)
    array = convert(array, aval_of(array).dtype)
    return smooth.gelu_by_tanh(array) if approximate else smooth.gelu(array)


def _over(x: Any, alpha: Any) -> Any:
    """`x` where it is positive, `alpha * (exp(x) - 1)` otherwise."""
    positive = operators.greater(x, 0)
    return where(positive, x, alpha * exponential.expm1(where(positive, 0.0, x)))


@composite()
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """`x` where it is positive, `alpha * (exp(x) - 1)` otherwise.

    >>> elu(jnp.array([-100.0, 0.0, 2.0]), alpha=0.5)
    Array([-0.5,  0. ,  2. ], dtype=float32)
    """
    return _over(promoted("elu", x, 1.0)[0], alpha)


_SCALE, _ALPHA = 1.0507009873554805, 1.6732632423543772


@ufunc(lambda x: _SCALE * _over(x + 0.0, _ALPHA))
def selu(x: ArrayLike) -> Array:
    """A scaled `elu` that keeps normal inputs normal, layer after layer.

    >>> selu(jnp.array([-100.0, 0.0, 1.0]))
    Array([-1.7580993,  0.       ,  1.050701 ], dtype=float32)
    """
    ...


@composite()
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """`x` where it is positive, `alpha * (exp(x / alpha) - 1)` otherwise.

    >>> celu(jnp.array([-100.0, 0.0, 2.0]), alpha=0.5)
    Array([-0.5,  0. ,  2. ], dtype=float32)
    """
    array, _ = promoted("celu", x, 1.0)
    positive = operators.greater(array, 0)
    return where(positive, array, alpha * exponential.expm1(where(positive, 0.0, array) / alpha))


@composite()
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 0.01) -> Array:
    """`x` where it is not negative, `negative_slope * x` otherwise.

    >>> leaky_relu(jnp.array([-2.0, 3.0]), negative_slope=0.5)
    Array([-1.,  3.], dtype=float32)
    """
    array = as_operand("leaky_relu", x)
    return where(array >= 0, array, negative_slope * array)


@composite()
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """`(x + sqrt(x ** 2 + b)) / 2`: softplus without exponentials.

    >>> squareplus(jnp.array([-1.5, 0.0, 1.5]))
    Array([0.5, 1. , 2. ], dtype=float32)
    """
    values, curvature = promoted_inexact("squareplus", *promoted_inexact("squareplus", x), b)
    return smooth.squareplus(*visible([values, curvature]))


@ufunc(smooth.sparse_plus, _beside(1.0))
def sparse_plus(x: ArrayLike) -> Array:
    """0 up to -1, `x` from 1 on, and between them the parabola that meets both.

    >>> sparse_plus(jnp.array([-2.0, 0.0, 2.0]))
    Array([0.  , 0.25, 2.  ], dtype=float32)
    """
    ...


@ufunc(lambda x: 0.5 * min(max(x + 1.0, 0.0), 2.0), _beside(1.0))
def sparse_sigmoid(x: ArrayLike) -> Array:
    """0 up to -1, 1 from 1 on, a straight line between: the derivative of `sparse_plus`. Its own at -1 and 1 is 1/4.

    >>> sparse_sigmoid(jnp.array([-2.0, 0.0, 2.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    ...


def _log1mexp(x: Any) -> Any:
    near = x < math.log(2)
    small, large = where(near, x, 1.0), where(near, 1.0, x)
    return where(near, exponential.log(-exponential.expm1(-small)), exponential.log1p(-exponential.exp(-large)))


@ufunc(_log1mexp, promoted_inexact)
def log1mexp(x: ArrayLike) -> Array:
    """`log(1 - exp(-x))` of each element, precise for small and for large x.

    >>> log1mexp(jnp.array([1e-10, 100.0]))
    Array([-23.02585,  -0.     ], dtype=float32)
    """
    ...


@ufunc(lambda x: x, unpromoted)
def identity(x: ArrayLike) -> Array:
    """`x` itself.

    >>> identity(jnp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    ...


@composite(static=("axis",))
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half of `x` along an axis times the sigmoid of the second; ValueError for an odd length.

    >>> glu(xlamini.numpy.ones(4)).shape
    (2,)
    """
    array = as_operand("glu", x)
    along = as_axis("glu", axis, array.ndim)
    length = array.shape[along]
    if length % 2:
        raise ValueError(f"glu: axis {along} of shape {array.shape} does not part into halves; its length must be even")
    half = length // 2
    first, second = slice_in_dim(array, 0, half, axis=along), slice_in_dim(array, half, length, axis=along)
    return first * sigmoid(second)
