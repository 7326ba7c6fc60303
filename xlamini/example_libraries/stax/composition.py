"""How layers are composed: in a row, side by side, or made when the shape of the input is known."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Final

from xlamini import numpy as jnp
from xlamini.example_libraries.stax.layers import Layer, Shape, without_params
from xlamini.random.keys import split


def FanOut(num: int) -> Layer:
    """A layer that repeats its input `num` times, for `parallel`.

    >>> init_fun, apply_fun = FanOut(2)
    >>> init_fun(xlamini.random.key(0), (-1, 3))[0]
    [(-1, 3), (-1, 3)]
    """
    return without_params(lambda shape: [shape] * num, lambda inputs: [inputs] * num)


FanInSum: Final = without_params(lambda shapes: shapes[0], functools.partial(functools.reduce, jnp.add))
"""The layer that adds its inputs, a list of arrays of one shape.

>>> init_fun, apply_fun = FanInSum
>>> apply_fun((), [jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])])
Array([4., 6.], dtype=float32)
"""


def FanInConcat(axis: int = -1) -> Layer:
    """A layer that concatenates its inputs, of shapes that differ along `axis` alone.

    >>> init_fun, apply_fun = FanInConcat()
    >>> apply_fun((), [jnp.zeros((1, 2)), jnp.ones((1, 1))])
    Array([[0., 0., 1.]], dtype=float32)
    """

    def shape_of(shapes: Sequence[Shape]) -> Shape:
        shape = list(shapes[0])
        shape[axis] = sum(each[axis] for each in shapes)
        return tuple(shape)

    return without_params(shape_of, lambda inputs: jnp.concatenate(inputs, axis))


def serial(*layers: Layer) -> Layer:
    """The layers one after the other; their params are in a list.

    >>> from xlamini.example_libraries.stax import Dense, LogSoftmax, Relu
    >>> init_fun, apply_fun = serial(Dense(8), Relu, Dense(2), LogSoftmax)
    >>> shape, params = init_fun(xlamini.random.key(0), (-1, 3))
    >>> shape, apply_fun(params, jnp.ones((5, 3))).shape
    ((-1, 2), (5, 2))
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        params = []
        for init, _ in layers:
            rng, layer_rng = split(rng)
            input_shape, param = init(layer_rng, input_shape)
            params.append(param)
        return input_shape, params

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        for (_, apply), param, rng in zip(layers, params, _keys(kwargs, len(layers)), strict=True):
            inputs = apply(param, inputs, rng=rng, **kwargs)
        return inputs

    return init_fun, apply_fun


def parallel(*layers: Layer) -> Layer:
    """The layers side by side, from a list of inputs to a list of outputs; see `FanOut` and `FanInSum`.

    ValueError where there are not as many inputs as layers.

    >>> from xlamini.example_libraries.stax import Dense, Identity
    >>> init_fun, apply_fun = serial(FanOut(2), parallel(Dense(3), Identity), FanInConcat())
    >>> shape, params = init_fun(xlamini.random.key(0), (-1, 2))
    >>> shape, apply_fun(params, jnp.ones((4, 2))).shape
    ((-1, 5), (4, 5))
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        if len(input_shape) != len(layers):
            raise ValueError(f"parallel: {len(layers)} layers take as many inputs, got {len(input_shape)} shapes")
        keys = split(rng, len(layers))
        made = [init(key, shape) for (init, _), key, shape in zip(layers, keys, input_shape, strict=True)]
        return [shape for shape, _ in made], [param for _, param in made]

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        keys = _keys(kwargs, len(layers))
        every = zip(layers, params, inputs, keys, strict=True)
        return [apply(param, x, rng=rng, **kwargs) for (_, apply), param, x, rng in every]

    return init_fun, apply_fun


def _keys(kwargs: dict[str, Any], count: int) -> Any:
    """A key for each layer from the argument `rng`, taken out of `kwargs`; None for each without one."""
    rng = kwargs.pop("rng", None)
    return (None,) * count if rng is None else split(rng, count)


def shape_dependent(make_layer: Callable[[Any], Layer]) -> Layer:
    """A layer that `make_layer` makes from the shape of its input.

    >>> from xlamini.example_libraries.stax import Dense
    >>> halved = shape_dependent(lambda shape: Dense(shape[-1] // 2))
    >>> halved[0](xlamini.random.key(0), (-1, 6))[0]
    (-1, 3)
    """

    def init_fun(rng: Any, input_shape: Any) -> Any:
        return make_layer(input_shape)[0](rng, input_shape)

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        shapes = [x.shape for x in inputs] if isinstance(inputs, list) else inputs.shape
        return make_layer(shapes)[1](params, inputs, **kwargs)

    return init_fun, apply_fun
