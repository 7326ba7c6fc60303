"""A linear layer."""
from __future__ import annotations

from typing import Any

from xlamini import numpy as jnp
from xlamini.example_libraries.stax.layers import Layer, Shape
from xlamini.nn.initializers import Initializer, glorot_normal, normal
from xlamini.random.keys import split


def Dense(
    out_dim: int, W_init: Initializer = glorot_normal(), b_init: Initializer = normal()  # noqa: B008 (constants)
) -> Layer:
    """A linear layer, `x @ W + b`.

    >>> init_fun, apply_fun = Dense(4)
    >>> shape, params = init_fun(xlamini.random.key(0), (-1, 3))
    >>> shape, apply_fun(params, jnp.ones((2, 3))).shape
    ((-1, 4), (2, 4))
    """

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        k1, k2 = split(rng)
        return (*input_shape[:-1], out_dim), (W_init(k1, (input_shape[-1], out_dim)), b_init(k2, (out_dim,)))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        return jnp.dot(inputs, W) + b

    return init_fun, apply_fun
