"""Layers of elementwise functions, and the others without params that keep the elements."""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, Final

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


Identity: Final = elementwise(_identity)
"""The layer that changes nothing; in `parallel` it is a shortcut past the layers beside it.

>>> init_fun, apply_fun = Identity
>>> init_fun(xlamini.random.key(0), (-1, 3)), apply_fun((), 2.0)
(((-1, 3), ()), 2.0)
"""

Tanh: Final = elementwise(jnp.tanh)
"""The layer of `numpy.tanh`.

>>> init_fun, apply_fun = Tanh
>>> apply_fun((), jnp.array([0.0, 100.0]))
Array([0., 1.], dtype=float32)
"""

Relu: Final = elementwise(relu)
"""The layer of `nn.relu`.

>>> init_fun, apply_fun = Relu
>>> apply_fun((), jnp.array([-1.0, 2.0]))
Array([0., 2.], dtype=float32)
"""

Exp: Final = elementwise(jnp.exp)
"""The layer of `numpy.exp`.

>>> init_fun, apply_fun = Exp
>>> apply_fun((), jnp.array([0.0, -jnp.inf]))
Array([1., 0.], dtype=float32)
"""

LogSoftmax: Final = elementwise(log_softmax, axis=-1)
"""The layer of `nn.log_softmax` along the last axis.

>>> init_fun, apply_fun = LogSoftmax
>>> apply_fun((), jnp.array([[2.0, 2.0]]))
Array([[-0.6931472, -0.6931472]], dtype=float32)
"""

Softmax: Final = elementwise(softmax, axis=-1)
"""The layer of `nn.softmax` along the last axis.

>>> init_fun, apply_fun = Softmax
>>> apply_fun((), jnp.array([[2.0, 2.0]]))
Array([[0.5, 0.5]], dtype=float32)
"""

Softplus: Final = elementwise(softplus)
"""The layer of `nn.softplus`.

>>> init_fun, apply_fun = Softplus
>>> apply_fun((), jnp.array([0.0, 100.0]))
Array([  0.6931472, 100.       ], dtype=float32)
"""

Sigmoid: Final = elementwise(sigmoid)
"""The layer of `nn.sigmoid`.

>>> init_fun, apply_fun = Sigmoid
>>> apply_fun((), jnp.array([0.0, 100.0]))
Array([0.5, 1. ], dtype=float32)
"""

Elu: Final = elementwise(elu)
"""The layer of `nn.elu`.

>>> init_fun, apply_fun = Elu
>>> apply_fun((), jnp.array([-100.0, 2.0]))
Array([-1.,  2.], dtype=float32)
"""

LeakyRelu: Final = elementwise(leaky_relu)
"""The layer of `nn.leaky_relu`.

>>> init_fun, apply_fun = LeakyRelu
>>> apply_fun((), jnp.array([-1.0, 2.0]))
Array([-0.01,  2.  ], dtype=float32)
"""

Selu: Final = elementwise(selu)
"""The layer of `nn.selu`.

>>> init_fun, apply_fun = Selu
>>> apply_fun((), jnp.array([-100.0, 0.0]))
Array([-1.7580993,  0.       ], dtype=float32)
"""

Gelu: Final = elementwise(gelu)
"""The layer of `nn.gelu`.

>>> init_fun, apply_fun = Gelu
>>> apply_fun((), jnp.array([-100.0, 0.0, 10.0]))
Array([-0.,  0., 10.], dtype=float32)
"""

Flatten: Final = without_params(
    lambda shape: (shape[0], math.prod(shape[1:])), lambda inputs: jnp.reshape(inputs, (inputs.shape[0], -1))
)
"""The layer that makes a vector of each example: all dimensions but the first become one.

>>> init_fun, apply_fun = Flatten
>>> init_fun(xlamini.random.key(0), (-1, 4, 4, 3))[0], apply_fun((), jnp.ones((2, 4, 4, 3))).shape
((-1, 48), (2, 48))
"""


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
