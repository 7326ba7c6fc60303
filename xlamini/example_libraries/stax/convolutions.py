"""Convolutions, and their transposes, as layers."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.wrapping import named_as
from xlamini.example_libraries.stax.layers import Layer, Shape, shape_of
from xlamini.nn.initializers import Initializer, glorot_normal, normal
from xlamini.primitives.windows.conv_forms import conv_transpose
from xlamini.primitives.windows.convolution import conv_general_dilated
from xlamini.random.keys import split

_IMAGES, _SEQUENCES = ("NHWC", "HWIO", "NHWC"), ("NHC", "HIO", "NHC")


def _general(convolution: Callable[..., Any]):
    """Decorator of a declaration: the layer of a convolution of any layout."""

    def declare(declaration: Callable[[], None]):
        @named_as(declaration)
        def layer(
            dimension_numbers: Sequence[str],
            out_chan: int,
            filter_shape: Sequence[int],
            strides: Sequence[int] | None = None,
            padding: Any = "VALID",
            W_init: Initializer | None = None,
            b_init: Initializer = normal(1e-6),  # noqa: B008 (a constant)
        ) -> Layer:
            numbers, steps = tuple(dimension_numbers), tuple(strides or (1,) * len(filter_shape))

            def convolve(inputs: Any, W: Any) -> Any:
                return convolution(inputs, W, steps, padding, dimension_numbers=numbers)

            return _convolution(convolve, numbers, out_chan, filter_shape, W_init, b_init)

        return layer

    return declare


@_general(conv_general_dilated)
def GeneralConv() -> None:
    """A convolution plus a bias, with dimensions in the order of `dimension_numbers`; `Conv` for NHWC and HWIO.

    >>> init_fun, apply_fun = GeneralConv(("NCHW", "OIHW", "NCHW"), out_chan=4, filter_shape=(3, 3))
    >>> shape, params = init_fun(xlamini.random.key(0), (-1, 1, 8, 8))
    >>> shape, params[0].shape, apply_fun(params, jnp.ones((2, 1, 8, 8))).shape
    ((-1, 4, 6, 6), (4, 1, 3, 3), (2, 4, 6, 6))
    """


@_general(conv_transpose)
def GeneralConvTranspose() -> None:
    """A transposed convolution plus a bias; `ConvTranspose` for NHWC and HWIO, `Conv1DTranspose` for NHC and HIO.

    >>> init_fun, apply_fun = GeneralConvTranspose(("NHC", "HIO", "NHC"), out_chan=4, filter_shape=(2,), strides=(2,))
    >>> init_fun(xlamini.random.key(0), (-1, 5, 3))[0]
    (-1, 10, 4)
    """


def _of_layout(general: Callable[..., Layer], dimension_numbers: Sequence[str]):
    """Decorator of a declaration: the layer of a convolution of one layout."""

    def declare(declaration: Callable[[], None]):
        @named_as(declaration)
        def layer(
            out_chan: int,
            filter_shape: Sequence[int],
            strides: Sequence[int] | None = None,
            padding: Any = "VALID",
            W_init: Initializer | None = None,
            b_init: Initializer = normal(1e-6),  # noqa: B008 (a constant)
        ) -> Layer:
            return general(dimension_numbers, out_chan, filter_shape, strides, padding, W_init, b_init)

        return layer

    return declare


@_of_layout(GeneralConv, _IMAGES)
def Conv() -> None:
    """A convolution of images, NHWC, by filters HWIO, plus a bias for each of the `out_chan` channels.

    >>> init_fun, apply_fun = Conv(4, (3, 3), padding="SAME")
    >>> shape, params = init_fun(xlamini.random.key(0), (-1, 8, 8, 3))
    >>> shape, params[0].shape, params[1].shape
    ((-1, 8, 8, 4), (3, 3, 3, 4), (1, 1, 1, 4))
    """


@_of_layout(GeneralConvTranspose, _IMAGES)
def ConvTranspose() -> None:
    """A transposed convolution of images, NHWC, by filters HWIO, plus a bias for each channel.

    >>> init_fun, apply_fun = ConvTranspose(4, (2, 2), strides=(2, 2))
    >>> init_fun(xlamini.random.key(0), (-1, 8, 8, 3))[0]
    (-1, 16, 16, 4)
    """


@_of_layout(GeneralConvTranspose, _SEQUENCES)
def Conv1DTranspose() -> None:
    """A transposed convolution of sequences, NHC, by filters HIO, plus a bias for each channel.

    >>> init_fun, apply_fun = Conv1DTranspose(4, (2,), strides=(2,))
    >>> init_fun(xlamini.random.key(0), (-1, 8, 3))[0]
    (-1, 16, 4)
    """


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
        output_shape = list(shape_of(convolve, input_shape, kernel_shape))
        output_shape[out.index("N")] = input_shape[lhs.index("N")]
        k1, k2 = split(rng)
        return tuple(output_shape), (W_init(k1, kernel_shape), b_init(k2, bias_shape))

    def apply_fun(params: Any, inputs: Any, **kwargs: Any) -> Any:
        W, b = params
        return convolve(inputs, W) + b

    return init_fun, apply_fun
