"""What a layer is, and what the files of layers share."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini import numpy as jnp
from xlamini.staging.run.jit.make_jaxpr import eval_shape
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct

Shape = tuple[int, ...]
Layer = tuple[Callable[..., Any], Callable[..., Any]]
"""The functions (init_fun, apply_fun) of a layer."""


def without_params(shape_of: Callable[[Any], Any], fun: Callable[[Any], Any]) -> Layer:
    """A layer without params: the shape of its output, and its function of the inputs."""
    return lambda rng, input_shape: (shape_of(input_shape), ()), lambda params, inputs, **kwargs: fun(inputs)


def shape_of(fun: Callable[..., Any], *shapes: Shape) -> Shape:
    """The shape of a function's result for arrays of these shapes, of which -1, the batch size, counts as 1."""
    known = [tuple(1 if n == -1 else n for n in shape) for shape in shapes]
    return eval_shape(fun, *(ShapeDtypeStruct(shape, jnp.float32) for shape in known)).shape
