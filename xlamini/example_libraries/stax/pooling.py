"""Pooling: the layers that reduce windows of their input, such as `MaxPool`."""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from xlamini import numpy as jnp
from xlamini.example_libraries.stax.layers import Layer, Shape, shape_of, without_params
from xlamini.transforms.reductions.reduce_window import reduce_window


def MaxPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID", spec: Any = None
) -> Layer:
    """The maximum of a window over the spatial dimensions; `spec` gives their order, by default NHWC.

    >>> init_fun, apply_fun = MaxPool((2, 2), strides=(2, 2))
    >>> image = jnp.arange(16.0).reshape(1, 4, 4, 1)
    >>> init_fun(xlamini.random.key(0), image.shape)[0], apply_fun((), image).ravel()
    ((1, 2, 2, 1), Array([ 5.,  7., 13., 15.], dtype=float32))
    """
    return _pooling(jnp.maximum, -math.inf, _itself, window_shape, strides, padding, spec)


def SumPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID", spec: Any = None
) -> Layer:
    """The sum of a window over the spatial dimensions; `spec` as of `MaxPool`.

    >>> _, apply_fun = SumPool((2,), spec="NWC")
    >>> apply_fun((), jnp.arange(4.0).reshape(1, 4, 1)).ravel()
    Array([1., 3., 5.], dtype=float32)
    """
    return _pooling(jnp.add, 0.0, _itself, window_shape, strides, padding, spec)


def AvgPool(
    window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID", spec: Any = None
) -> Layer:
    """The mean of a window, without what is padded, over the spatial dimensions; `spec` as of `MaxPool`.

    >>> _, apply_fun = AvgPool((2,), padding="SAME", spec="NWC")
    >>> apply_fun((), jnp.arange(4.0).reshape(1, 4, 1)).ravel()
    Array([0.5, 1.5, 2.5, 3. ], dtype=float32)
    """
    return _pooling(jnp.add, 0.0, _mean, window_shape, strides, padding, spec)


def _pooling(
    reducer: Callable[..., Any], start: float, rescale: Callable[..., Any], window_shape: Sequence[int],
    strides: Sequence[int] | None, padding: Any, spec: Any,
) -> Layer:  # fmt: skip
    strides = tuple(strides or (1,) * len(window_shape))
    order = "NHWC" if spec is None and len(strides) == 2 else spec or f"N{'D' * len(strides)}C"
    dims, steps = _placed(order, window_shape), _placed(order, strides)

    def windows(inputs: Any) -> Any:
        return reduce_window(inputs, jnp.array(start, inputs.dtype), reducer, dims, steps, padding)

    def apply(inputs: Any) -> Any:
        return rescale(windows(inputs), inputs, windows)

    def output_shape(input_shape: Shape) -> Shape:
        pairs = zip(input_shape, shape_of(apply, input_shape), strict=True)
        return tuple(-1 if given == -1 else n for given, n in pairs)

    return without_params(output_shape, apply)


def _placed(order: str, sizes: Sequence[int]) -> Shape:
    """The sizes at the spatial dimensions, 1 at batch and channels."""
    given = iter(sizes)
    return tuple(1 if c in "NC" else next(given) for c in order)


def _itself(reduced: Any, inputs: Any, windows: Callable[..., Any]) -> Any:
    return reduced


def _mean(sums: Any, inputs: Any, windows: Callable[..., Any]) -> Any:
    return sums / windows(jnp.ones_like(inputs))
