"""Images resized, scaled and moved: each new sample is a weighted sum of the old ones around its place.

Along each dimension the weights are a matrix of old by new samples, made from a kernel of the distance between them
(Turkowski, "Filters for common resampling tasks", 1990); then the image is multiplied by one matrix after the other.
"""
from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core import Shape, ShapeError, finfo
from xlamini.lax import Precision, iota
from xlamini.numpy.arguments import as_axes, as_operand, as_shape
from xlamini.numpy.arithmetic import abs as absolute, maximum, minimum, reciprocal
from xlamini.numpy.einsum import einsum
from xlamini.numpy.indexing.take import take
from xlamini.numpy.rounding import floor
from xlamini.numpy.selection import where
from xlamini.numpy.trigonometric import sin
from xlamini.primitives import promoted_inexact
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]


class ResizeMethod(enum.Enum):
    """The kernel that weighs old samples for new ones.

    NEAREST takes the nearest one, LINEAR weighs two, CUBIC four (Keys, "Cubic convolution interpolation", 1981),
    CUBIC_PYTORCH too, as PyTorch does, LANCZOS3 and LANCZOS5 six and ten; AREA weighs by the common area.

    >>> xlamini.image.resize(jnp.array([[0.0, 1.0]]), (1, 4), ResizeMethod.NEAREST)
    Array([[0., 0., 1., 1.]], dtype=float32)
    >>> xlamini.image.resize(jnp.array([[0.0, 1.0]]), (1, 4), ResizeMethod.LINEAR)
    Array([[0.  , 0.25, 0.75, 1.  ]], dtype=float32)
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of this name: "linear", "bilinear" or "trilinear", "cubic" and so on; ValueError otherwise."""
        if s not in _METHODS:
            raise ValueError(f"resize: method must be one of {', '.join(map(repr, _METHODS))}, got {s!r}")
        return _METHODS[s]


_LETTERS = "abcdefghijklmnopqrstuvwxyz"

_METHODS = {
    "nearest": ResizeMethod.NEAREST,
    **dict.fromkeys(("linear", "bilinear", "trilinear", "triangle"), ResizeMethod.LINEAR),
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    **dict.fromkeys(("cubic", "bicubic", "tricubic"), ResizeMethod.CUBIC),
    **dict.fromkeys(("cubic-pytorch", "bicubic-pytorch"), ResizeMethod.CUBIC_PYTORCH),
    "area": ResizeMethod.AREA,
}


@composite(static=("shape", "method", "antialias", "precision"))
def resize(
    image: ArrayLike,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = Precision.HIGHEST,
) -> Array:
    """Resize an image to another shape of the same rank; dimensions of equal size are not resampled.

    With `antialias` the kernel grows with the step between samples where the image shrinks. Integers become floats,
    unless `method` is "nearest". ShapeError for a shape of another rank, ValueError for an unknown method.

    >>> resize(jnp.array([[0.0, 1.0]]), (1, 4), "linear")
    Array([[0.  , 0.25, 0.75, 1.  ]], dtype=float32)
    """
    image, shape, method = as_operand("resize", image), as_shape("resize", shape), _method(method)
    if len(shape) != image.ndim:
        raise ShapeError(f"resize: the image has shape {image.shape}, so shape {shape} must have {image.ndim} sizes")
    changed = [d for d in range(image.ndim) if shape[d] != image.shape[d]]
    if method is ResizeMethod.NEAREST:
        return _nearest(image, shape, changed)
    scales = [1.0 if shape[d] == 0 else shape[d] / image.shape[d] for d in changed]
    x, moves = promoted_inexact("resize", image)[0], [0.0] * len(changed)
    return _resampled(x, shape, changed, scales, moves, method, antialias, precision)


@composite(static=("shape", "spatial_dims", "method", "antialias", "precision"))
def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: Any = Precision.HIGHEST,
) -> Array:
    """Scale an image by `scale` and shift it by `translation`, into an array of this shape; zero outside it.

    `scale` and `translation` have one number for each of the `spatial_dims`: what was at x is at `x * scale +
    translation`, where the first sample reaches from 0 to 1. Derivatives in both of them exist. Any method but
    "nearest". ShapeError for numbers or a shape that do not fit.

    >>> scale_and_translate(jnp.array([1.0, 2.0]), (3,), (0,), jnp.array([1.0]), jnp.array([1.0]), "linear")
    Array([0., 1., 2.], dtype=float32)
    """
    name = "scale_and_translate"
    image, shape, method = as_operand(name, image), as_shape(name, shape), _method(method)
    if method is ResizeMethod.NEAREST:
        raise ValueError(f'{name}: method "nearest" has no weights; use "linear", or resize')
    if len(shape) != image.ndim:
        raise ShapeError(f"{name}: the image has shape {image.shape}, so shape {shape} must have {image.ndim} sizes")
    dims = as_axes(name, spatial_dims, image.ndim)
    scales, moves = _numbers(name, "scale", scale, len(dims)), _numbers(name, "translation", translation, len(dims))
    return _resampled(promoted_inexact(name, image)[0], shape, dims, scales, moves, method, antialias, precision)


# --- helpers


def _method(method: Any) -> ResizeMethod:
    return method if isinstance(method, ResizeMethod) else ResizeMethod.from_string(method)


def _numbers(name: str, what: str, values: Any, count: int) -> list[Any]:
    values = as_operand(name, values)
    if values.shape != (count,):
        raise ShapeError(f"{name}: {what} must have shape ({count},), one for each of spatial_dims; got {values.shape}")
    return [values[i] for i in range(count)]


def _nearest(image: Any, shape: Shape, dims: Sequence[int]) -> Any:
    for d in dims:
        size = image.shape[d]
        places = floor((iota(np.float32, shape[d]) + 0.5) * size / shape[d]).astype(np.int32)
        image = take(image, places, axis=d, mode="clip")
    return image


def _resampled(
    image: Any,
    shape: Shape,
    dims: Sequence[int],
    scales: Sequence[Any],
    moves: Sequence[Any],
    method: ResizeMethod,
    antialias: bool,
    precision: Any,
) -> Any:
    """The image times a matrix of weights along each of these dimensions."""
    dtype = image.dtype
    real = np.zeros((), dtype).real.dtype
    matrices = [
        _weights(image.shape[d], shape[d], scale, move, method, antialias, real).astype(dtype)
        for d, scale, move in zip(dims, scales, moves, strict=True)
    ]
    old = _LETTERS[: image.ndim]
    new = "".join(letter.upper() if d in dims else letter for d, letter in enumerate(old))
    terms = ",".join([old, *(old[d] + new[d] for d in dims)])
    return einsum(f"{terms}->{new}", image, *matrices, precision=precision, optimize="optimal")


def _weights(
    old: int, new: int, scale: Any, move: Any, method: ResizeMethod, antialias: bool, dtype: Any
) -> Any:
    """The weight of each old sample (rows) for each new one (columns); 0 for samples outside the image."""
    step = 1 / scale if isinstance(scale, float) else reciprocal(scale.astype(dtype))
    start = move * step
    centre = (iota(dtype, new) + 0.5) * step - start - 0.5
    if method is ResizeMethod.AREA:
        shares = _common_area(old, new, step, start, dtype)
    elif method is ResizeMethod.CUBIC_PYTORCH and not antialias:
        shares = _cubic_over_the_edge(old, centre)
    else:
        stretch = maximum(step, 1.0) if antialias else 1.0
        distances = absolute(centre[None, :] - iota(dtype, old)[:, None]) / stretch
        shares = _KERNELS[method](distances)
    total = shares.sum(0, keepdims=True)
    enough = absolute(total) > 1000 * float(finfo(np.float32).eps)
    inside = (centre >= -0.5) & (centre <= old - 0.5)
    return where(enough & inside[None, :], shares / where(total != 0, total, 1), 0)


def _common_area(old: int, new: int, step: Any, start: Any, dtype: Any) -> Any:
    """The length that each old sample and each new one have in common."""
    low = (iota(dtype, new) * step - start)[None, :]
    cell = iota(dtype, old)[:, None]
    return maximum(minimum(low + step, cell + 1) - maximum(low, cell), 0)


def _lanczos(x: Any, radius: float) -> Any:
    """`sinc(x) * sinc(x / radius)` up to the radius; 1 near 0, where the quotient is lost in rounding."""
    away = x > 1e-3
    angle = math.pi * where(away, x, 1)
    value = radius * sin(angle) * sin(angle / radius) / (angle * angle)
    return where(x > radius, 0, where(away, value, 1))


def _cubic(x: Any, slope: float) -> Any:
    """Keys' kernel, of which `slope` is the derivative at 1."""
    near = ((slope + 2) * x - (slope + 3)) * x * x + 1
    far = ((slope * x - 5 * slope) * x + 8 * slope) * x - 4 * slope
    return where(x >= 2, 0, where(x >= 1, far, near))


def _cubic_over_the_edge(old: int, centre: Any) -> Any:
    """PyTorch's: of a sharper kernel, and beyond the image its outermost samples go on."""
    place = iota(np.int32, old + 4) - 2
    counts = place.clip(0, old - 1)[None, :] == iota(np.int32, old)[:, None]
    return counts.astype(centre.dtype) @ _cubic(absolute(centre[None, :] - place[:, None]), -0.75)


# The weight of a sample at a distance that is not negative, before all of them are made to sum to 1.
_KERNELS: dict[ResizeMethod, Callable[[Any], Any]] = {
    ResizeMethod.LINEAR: lambda x: maximum(1 - x, 0),
    ResizeMethod.LANCZOS3: lambda x: _lanczos(x, 3.0),
    ResizeMethod.LANCZOS5: lambda x: _lanczos(x, 5.0),
    ResizeMethod.CUBIC: lambda x: _cubic(x, -0.5),
    ResizeMethod.CUBIC_PYTORCH: lambda x: _cubic(x, -0.5),
}
