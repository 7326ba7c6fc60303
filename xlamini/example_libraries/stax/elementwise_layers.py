"""Layers of elementwise functions, and the others without params that keep the elements."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from xlamini import numpy as jnp
from xlamini.example_libraries.stax.layers import Layer, without_params
from xlamini.nn.activations import elu, gelu, leaky_relu, relu, selu, sigmoid, softplus
from xlamini.nn.softmax import log_softmax, softmax
from xlamini.random.discrete import bernoulli


def _identity(x: Any) -> Any:
    return x


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A layer that applies a function of arrays that keeps their shape.

    >>> elementwise(jnp.clip, max=1.0)[1]((), jnp.array(3.0))
    Array(1., dtype=float32, weak_type=True)
    """
    return without_params(_identity, functools.partial(fun, **fun_kwargs))


Tanh, Relu, Exp = elementwise(jnp.tanh), elementwise(relu), elementwise(jnp.exp)
LogSoftmax, Softmax = elementwise(log_softmax, axis=-1), elementwise(softmax, axis=-1)
Softplus, Sigmoid, Elu, LeakyRelu = map(elementwise, (softplus, sigmoid, elu, leaky_relu))
Selu, Gelu, Identity = elementwise(selu), elementwise(gelu), elementwise(_identity)
Flatten = without_params(
    lambda shape: (shape[0], math.prod(shape[1:])), lambda inputs: jnp.reshape(inputs, (inputs.shape[0], -1))
)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Dropout: an element survives with the probability `rate`, divided by it; the others are zero.

    In the mode "train" apply_fun needs a random key, `apply_fun(params, inputs, rng=key)`, and raises ValueError
    without one; in any other mode it changes nothing.

    >>> init_fun, apply_fun = Dropout(0.5)
    >>> apply_fun((), jnp.ones(8), rng=xlamini.random.key(0))
    Array([0., 0., 2., 2., 0., 2., 2., 0.], dtype=float32)
    >>> Dropout(0.5, mode="test")[1]((), jnp.ones(3))
    Array([1., 1., 1.], dtype=float32)
    """

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        if mode != "train":
            return inputs
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError("Dropout: a random key is needed; call apply_fun(params, inputs, rng=key)")
        return jnp.where(bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return Identity[0], apply_fun
