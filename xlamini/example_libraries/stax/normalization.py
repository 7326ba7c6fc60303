"""Batch normalization as a layer."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini import numpy as jnp
from xlamini.example_libraries.stax.layers import Layer, Shape
from xlamini.nn.encoding import standardize
from xlamini.nn.initializers import Initializer, ones, zeros
from xlamini.random.keys import split


def BatchNorm(
    axis: int | Sequence[int] = (0, 1, 2),
    epsilon: float = 1e-5,
    center: bool = True,
    scale: bool = True,
    beta_init: Initializer = zeros,
    gamma_init: Initializer = ones,
) -> Layer:
    """Normalization to mean 0 and variance 1 over the axes `axis` of each batch, then a learned scale and shift.

    Without `center` there is no shift, without `scale` no scale; their params are then `()`.

    >>> init_fun, apply_fun = BatchNorm(axis=0)
    >>> shape, params = init_fun(xlamini.random.key(0), (-1, 2))
    >>> apply_fun(params, jnp.array([[1.0, 10.0], [3.0, 30.0]])).round(2)
    Array([[-1., -1.],
           [ 1.,  1.]], dtype=float32)
    """
    axes = (axis,) if isinstance(axis, int) else tuple(axis)

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        shape = tuple(n for i, n in enumerate(input_shape) if i not in axes)
        k1, k2 = split(rng)
        return input_shape, (beta_init(k1, shape) if center else (), gamma_init(k2, shape) if scale else ())

    def apply_fun(params: Any, x: Any, **kwargs: Any) -> Any:
        beta, gamma = params
        z = standardize(x, axes, epsilon=epsilon)
        z = z * jnp.expand_dims(gamma, axes) if scale else z
        return z + jnp.expand_dims(beta, axes) if center else z

    return init_fun, apply_fun
