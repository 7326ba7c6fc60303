"""Neural-network layers as pairs of functions, `(init_fun, apply_fun)`, and how to compose them.

    output_shape, params = init_fun(rng, input_shape)
    outputs = apply_fun(params, inputs, rng=None)

Params are tuples and lists of arrays. A shape may have -1 for the batch size.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from xlamini import numpy as jnp
from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.nn.activations import elu, gelu, leaky_relu, relu, selu, sigmoid, softplus
from xlamini.nn.encoding import standardize
from xlamini.nn.initializers import Initializer, glorot_normal, normal, ones, zeros
from xlamini.nn.softmax import log_softmax, softmax
from xlamini.primitives.windows.conv_forms import conv_transpose
from xlamini.primitives.windows.convolution import conv_general_dilated
from xlamini.random.discrete import bernoulli
from xlamini.random.keys import split
from xlamini.staging.run.make_jaxpr import eval_shape
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.transforms.reductions.reduce_window import reduce_window

__all__ = [
    "AvgPool", "BatchNorm", "Conv", "Conv1DTranspose", "ConvTranspose", "Dense", "Dropout", "Elu", "Exp", "FanInConcat",
    "FanInSum", "FanOut", "Flatten", "Gelu", "GeneralConv", "GeneralConvTranspose", "Identity", "LeakyRelu",
    "LogSoftmax", "MaxPool", "Relu", "Selu", "Sigmoid", "Softmax", "Softplus", "SumPool", "Tanh", "elementwise", "elu",
    "gelu", "glorot", "glorot_normal", "leaky_relu", "log_softmax", "logsoftmax", "normal", "ones", "parallel", "randn",
    "relu", "selu", "serial", "shape_dependent", "sigmoid", "softmax", "softplus", "standardize", "zeros",
]  # fmt: skip

Shape = tuple[int, ...]
Layer = tuple[Callable[..., Any], Callable[..., Any]]
"""The functions (init_fun, apply_fun) of a layer."""

logsoftmax, randn, glorot = log_softmax, normal, glorot_normal


# --- layers with parameters


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


def GeneralConv(
    dimension_numbers: Sequence[str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = normal(1e-6),  # noqa: B008 (a constant)
) -> Layer:
    """A convolution plus a bias, with dimensions in the order of `dimension_numbers`; `Conv` for NHWC and HWIO."""
    (lhs, rhs, out), steps = dimension_numbers, tuple(strides or (1,) * len(filter_shape))

    def convolve(inputs: Any, W: Any) -> Any:
        return conv_general_dilated(inputs, W, steps, padding, dimension_numbers=(lhs, rhs, out))

    return _convolution(convolve, dimension_numbers, out_chan, filter_shape, W_init, b_init)


def GeneralConvTranspose(
    dimension_numbers: Sequence[str],
    out_chan: int,
    filter_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Any = "VALID",
    W_init: Initializer | None = None,
    b_init: Initializer = normal(1e-6),  # noqa: B008 (a constant)
) -> Layer:
    """A transposed convolution plus a bias; `ConvTranspose` for NHWC and HWIO, `Conv1DTranspose` for NHC and HIO."""
    (lhs, rhs, out), steps = dimension_numbers, tuple(strides or (1,) * len(filter_shape))

    def convolve(inputs: Any, W: Any) -> Any:
        return conv_transpose(inputs, W, steps, padding, dimension_numbers=(lhs, rhs, out))

    return _convolution(convolve, dimension_numbers, out_chan, filter_shape, W_init, b_init)


Conv = functools.partial(GeneralConv, ("NHWC", "HWIO", "NHWC"))
ConvTranspose = functools.partial(GeneralConvTranspose, ("NHWC", "HWIO", "NHWC"))
Conv1DTranspose = functools.partial(GeneralConvTranspose, ("NHC", "HIO", "NHC"))


def _convolution(
    convolve: Callable[[Any, Any], Any],
    dimension_numbers: Sequence[str],
    out_chan: int,
    filter_shape: Sequence[int],
    W_init: Initializer | None,
    b_init: Initializer,
) -> Layer:
    lhs, rhs, out = dimension_numbers
    W_init = W_init or glorot_normal(rhs.index("I"), rhs.index("O"))
    bias_shape = tuple(out_chan if c == "C" else 1 for c in out)

    def init_fun(rng: Any, input_shape: Shape) -> Any:
        sizes = iter(filter_shape)
        kernel_shape = tuple(
            out_chan if c == "O" else input_shape[lhs.index("C")] if c == "I" else next(sizes) for c in rhs
        )
        output_shape = list(_shape_of(convolve, input_shape, kernel_shape))
        output_shape[out.index("N")] = input_shape[lhs.index("N")]
        k1, k2 = split(rng)
        return tuple(output_shape), (W_init(k1, kernel_shape), b_init(k2, bias_shape))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        return convolve(inputs, W) + b

    return init_fun, apply_fun


def _shape_of(fun: Callable[..., Any], *shapes: Shape) -> Shape:
    """The shape of a function's result for arrays of these shapes, of which -1, the batch size, counts as 1."""
    known = [tuple(1 if n == -1 else n for n in shape) for shape in shapes]
    return eval_shape(fun, *(ShapeDtypeStruct(shape, jnp.float32) for shape in known)).shape


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


# --- layers without parameters


def _without_params(shape_of: Callable[[Any], Any], fun: Callable[[Any], Any]) -> Layer:
    return lambda rng, input_shape: (shape_of(input_shape), ()), lambda params, inputs, **kwargs: fun(inputs)


def _identity(x: Any) -> Any:
    return x


def elementwise(fun: Callable[..., Any], **fun_kwargs: Any) -> Layer:
    """A layer that applies a function of arrays that keeps their shape.

    >>> elementwise(jnp.clip, max=1.0)[1]((), jnp.array(3.0))
    Array(1., dtype=float32, weak_type=True)
    """
    return _without_params(_identity, functools.partial(fun, **fun_kwargs))


Tanh, Relu, Exp = elementwise(jnp.tanh), elementwise(relu), elementwise(jnp.exp)
LogSoftmax, Softmax = elementwise(log_softmax, axis=-1), elementwise(softmax, axis=-1)
Softplus, Sigmoid, Elu, LeakyRelu = map(elementwise, (softplus, sigmoid, elu, leaky_relu))
Selu, Gelu, Identity = elementwise(selu), elementwise(gelu), elementwise(_identity)
Flatten = _without_params(
    lambda shape: (shape[0], math.prod(shape[1:])), lambda inputs: jnp.reshape(inputs, (inputs.shape[0], -1))
)


def _pooling(
    name: str, about: str, reducer: Callable[..., Any], start: float, rescale: Callable[..., Any] | None = None
) -> Callable[..., Layer]:
    def pool(
        window_shape: Sequence[int], strides: Sequence[int] | None = None, padding: Any = "VALID", spec: Any = None
    ) -> Layer:
        strides = tuple(strides or (1,) * len(window_shape))
        order = "NHWC" if spec is None and len(strides) == 2 else spec or f"N{'D' * len(strides)}C"
        dims, steps = _placed(order, window_shape), _placed(order, strides)

        def windows(inputs: Any) -> Any:
            return reduce_window(inputs, jnp.array(start, inputs.dtype), reducer, dims, steps, padding)

        def apply(inputs: Any) -> Any:
            out = windows(inputs)
            return rescale(out, inputs, windows) if rescale else out

        def shape_of(input_shape: Shape) -> Shape:
            pairs = zip(input_shape, _shape_of(apply, input_shape), strict=True)
            return tuple(-1 if given == -1 else n for given, n in pairs)

        return _without_params(shape_of, apply)

    pool.__name__ = pool.__qualname__ = name
    pool.__doc__ = about
    return pool


def _placed(order: str, sizes: Sequence[int]) -> Shape:
    """The sizes at the spatial dimensions, 1 at batch and channels."""
    given = iter(sizes)
    return tuple(1 if c in "NC" else next(given) for c in order)


def _mean(sums: Any, inputs: Any, windows: Callable[..., Any]) -> Any:
    return sums / windows(jnp.ones_like(inputs))


_ORDER = "of a window over the spatial dimensions; `spec` gives their order, by default NHWC."
MaxPool = _pooling("MaxPool", f"The maximum {_ORDER}", jnp.maximum, -math.inf)
SumPool = _pooling("SumPool", f"The sum {_ORDER}", jnp.add, 0.0)
AvgPool = _pooling("AvgPool", f"The mean, without padding, {_ORDER}", jnp.add, 0.0, _mean)


def Dropout(rate: float, mode: str = "train") -> Layer:
    """Dropout: an element survives with the probability `rate`, divided by it; the others are zero.

    In the mode "train" apply_fun needs a random key, `apply_fun(params, inputs, rng=key)`; in any other one it changes
    nothing.
    """

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        if mode != "train":
            return inputs
        rng = kwargs.get("rng")
        if rng is None:
            raise ValueError("Dropout: a random key is needed; call apply_fun(params, inputs, rng=key)")
        return jnp.where(bernoulli(rng, rate, inputs.shape), inputs / rate, 0)

    return Identity[0], apply_fun


# --- composition


def FanOut(num: int) -> Layer:
    """A layer that repeats its input `num` times, for `parallel`."""
    return _without_params(lambda shape: [shape] * num, lambda inputs: [inputs] * num)


FanInSum = _without_params(lambda shapes: shapes[0], functools.partial(functools.reduce, jnp.add))


def FanInConcat(axis: int = -1) -> Layer:
    """A layer that concatenates its inputs."""

    def shape_of(shapes: Sequence[Shape]) -> Shape:
        shape = list(shapes[0])
        shape[axis] = sum(each[axis] for each in shapes)
        return tuple(shape)

    return _without_params(shape_of, lambda inputs: jnp.concatenate(inputs, axis))


def serial(*layers: Layer) -> Layer:
    """The layers one after the other; their params are in a list.

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
    """The layers side by side, from a list of inputs to a list of outputs; see `FanOut` and `FanInSum`."""

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


_edge_of_face(globals())
