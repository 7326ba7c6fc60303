"""Initial values of weights, under the names JAX users know as `jax.nn.initializers`.

An initializer is a function `(key, shape, dtype=None, out_sharding=None)` that returns an array, split over a mesh as
`out_sharding` says; what is defined here mostly makes initializers. Without a dtype they make floats of the default
width.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np

from xlamini.core import ShapeError, canonicalize_dtype, check_user_dtype, issubdtype, literal
from xlamini.core.errors.api_boundary import api_boundary, edge_of_face as _edge_of_face
from xlamini.numpy.creation import full, ones as all_ones, zeros as all_zeros
from xlamini.primitives import convert, in_dtype, in_sharding, log, moveaxis, split_p, sqrt
from xlamini.primitives.elementwise.complex import complex as from_parts, part_dtype
from xlamini.primitives.elementwise.trigonometric import cos, sin
from xlamini.random import matrices as _matrices
from xlamini.random.arguments import checked_shape, sampler
from xlamini.random.normal import normal_noise, truncated_normal as _truncated_normal
from xlamini.random.uniform import halves, uniform as _uniform, uniform_between

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform",
    "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones", "orthogonal",
    "truncated_normal", "uniform", "variance_scaling", "xavier_normal", "xavier_uniform", "zeros",
]

Axes = int | Sequence[int]
Draw = Callable[[Any, tuple[int, ...], np.dtype], Any]

# The standard deviation of normal numbers cut off at two of it, real and complex.
_TRUNCATED = 0.87962566103423978
_COMPLEX_TRUNCATED = 0.95311164380491208


@runtime_checkable
class Initializer(Protocol):
    """The type of initializers: what is called with a key, a shape and a dtype, and returns an array of these.

    >>> def layer(key, make: Initializer = nn.initializers.glorot_normal()):
    ...     return {"w": make(key, (3, 2), "float32"), "b": jnp.zeros(2)}
    >>> layer(random.key(0), nn.initializers.ones)["w"].shape
    (3, 2)
    >>> isinstance(nn.initializers.he_uniform(), Initializer)
    True
    """

    def __call__(self, key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Any:
        """An array of this shape and dtype."""
        raise NotImplementedError


def zeros(key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Any:
    """Zeros; the key is not used.

    >>> zeros(None, (2,))
    Array([0., 0.], dtype=float32)
    """
    return all_zeros(shape, dtype, out_sharding=out_sharding)


def ones(key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Any:
    """Ones; the key is not used.

    >>> ones(None, (2,))
    Array([1., 1.], dtype=float32)
    """
    return all_ones(shape, dtype, out_sharding=out_sharding)


def constant(value: Any, dtype: Any = None) -> Initializer:
    """An initializer that fills with `value`, a number or an array that broadcasts.

    >>> constant(2.5)(None, (2,))
    Array([2.5, 2.5], dtype=float32)
    """
    return _initializer("constant", dtype, lambda key, shape, found: full(shape, value, found))


def uniform(scale: Any = 1e-2, dtype: Any = None) -> Initializer:
    """An initializer that draws floats from [0, scale).

    >>> uniform(2.0)(xlamini.random.key(0), (2, 3)).shape
    (2, 3)
    """
    draw = lambda key, shape, found: _uniform(key, shape, found) * _factor(scale, found)  # noqa: E731
    return _initializer("uniform", dtype, draw)


def normal(stddev: Any = 1e-2, dtype: Any = None) -> Initializer:
    """An initializer that draws floats, or complex numbers, from the normal distribution with mean 0.

    >>> normal(2.0)(xlamini.random.key(0), (2, 3)).shape
    (2, 3)
    """
    return _initializer("normal", dtype, lambda key, shape, found: _normal(key, shape, found) * _factor(stddev, found))


def truncated_normal(stddev: Any = 1e-2, dtype: Any = None, lower: Any = -2.0, upper: Any = 2.0) -> Initializer:
    """An initializer that draws normal floats cut to `lower` and `upper`, which count in units of `stddev`.

    >>> truncated_normal(2.0)(xlamini.random.key(0), (2, 3)).shape
    (2, 3)
    """

    def draw(key: Any, shape: tuple[int, ...], found: np.dtype) -> Any:
        return _truncated_normal(key, lower, upper, shape, found) * _factor(stddev, found)

    return _initializer("truncated_normal", dtype, draw)


def variance_scaling(
    scale: Any,
    mode: str,
    distribution: str,
    in_axis: Axes = -2,
    out_axis: Axes = -1,
    batch_axis: Axes = (),
    dtype: Any = None,
) -> Initializer:
    """An initializer that draws with variance `scale / n`, where n counts the weights that meet in a unit.

    `mode` defines n: 'fan_in', the weights that lead into a unit of the output; 'fan_out', those that lead out of one
    of the input; 'fan_avg' and 'fan_geo_avg', the arithmetic and the geometric mean of both. Axes named in none of
    `in_axis`, `out_axis`, `batch_axis` are those of a receptive field. `distribution` is 'normal', 'uniform', or
    'truncated_normal'. Raises ValueError for another mode or distribution, and for shapes without those axes.

    >>> variance_scaling(1.0, "fan_in", "normal")(xlamini.random.key(0), (2, 3)).shape
    (2, 3)
    """

    def draw(key: Any, shape: tuple[int, ...], found: np.dtype) -> Any:
        return _scaled(key, shape, found, scale / _units(shape, mode, in_axis, out_axis, batch_axis), distribution)

    return _initializer("variance_scaling", dtype, draw)


def _family(name: str, scale: float, mode: str, distribution: str, about: str) -> Callable[..., Initializer]:
    """A special case of `variance_scaling`."""

    def make(in_axis: Axes = -2, out_axis: Axes = -1, batch_axis: Axes = (), dtype: Any = None) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = (
        f"{about}: `variance_scaling({scale}, {mode!r}, {distribution!r})`.\n\n"
        f"    >>> {name}()(xlamini.random.key(0), (2, 3)).shape\n    (2, 3)\n    "
    )
    return make


_GLOROT = "The initializer of Glorot and Bengio (2010)"
_LECUN = "The initializer of LeCun and others (1998)"
_HE = "The initializer of He and others (2015)"
glorot_uniform: Callable[..., Initializer]
xavier_uniform: Callable[..., Initializer]
glorot_uniform = xavier_uniform = _family("glorot_uniform", 1.0, "fan_avg", "uniform", _GLOROT)
glorot_normal: Callable[..., Initializer]
xavier_normal: Callable[..., Initializer]
glorot_normal = xavier_normal = _family("glorot_normal", 1.0, "fan_avg", "truncated_normal", _GLOROT)
lecun_uniform: Final = _family("lecun_uniform", 1.0, "fan_in", "uniform", _LECUN)
lecun_normal: Final = _family("lecun_normal", 1.0, "fan_in", "truncated_normal", _LECUN)
he_uniform: Callable[..., Initializer]
kaiming_uniform: Callable[..., Initializer]
he_uniform = kaiming_uniform = _family("he_uniform", 2.0, "fan_in", "uniform", _HE)
he_normal: Callable[..., Initializer]
kaiming_normal: Callable[..., Initializer]
he_normal = kaiming_normal = _family("he_normal", 2.0, "fan_in", "truncated_normal", _HE)


def orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """An initializer that makes matrices with orthonormal columns, or rows if these are fewer, times `scale`.

    The columns lie along `column_axis`; all other axes form the rows. Raises ShapeError below rank 2.

    >>> orthogonal()(xlamini.random.key(0), (2, 3)).shape
    (2, 3)
    """
    draw = lambda key, shape, found: _orthogonal("orthogonal", key, shape, found, scale, column_axis)  # noqa: E731
    return _initializer("orthogonal", dtype, draw)


def delta_orthogonal(scale: Any = 1.0, column_axis: int = -1, dtype: Any = None) -> Initializer:
    """An initializer for convolutions: an orthogonal matrix at the centre of the receptive field, else zeros.

    The last two axes are those of input and output, of which the first may not be larger; in front there are one to
    three of the receptive field (else ShapeError). Source: Xiao and others, 2018.

    >>> delta_orthogonal()(xlamini.random.key(0), (3, 2, 4)).shape
    (3, 2, 4)
    """

    def draw(key: Any, shape: tuple[int, ...], found: np.dtype) -> Any:
        if len(shape) not in (3, 4, 5) or shape[-2] > shape[-1]:
            raise ShapeError(
                "delta_orthogonal: shape must be (field…, in, out) with one to three axes of the receptive field and "
                f"in <= out, got {shape}"
            )
        matrix = _orthogonal("delta_orthogonal", key, shape[-2:], found, scale, column_axis)
        centre = tuple((n - 1) // 2 for n in shape[:-2])
        return all_zeros(shape, found).at[centre].set(matrix)

    return _initializer("delta_orthogonal", dtype, draw)


def _orthogonal(name: str, key: Any, shape: tuple[int, ...], dtype: np.dtype, scale: Any, column_axis: int) -> Any:
    if len(shape) < 2:
        raise ShapeError(f"{name}: shape must have at least two axes, got {shape}")
    axis = range(len(shape))[column_axis]
    others = (*shape[:axis], *shape[axis + 1 :])
    drawn = _matrices.orthogonal(key, math.prod(others), (), dtype, shape[axis])
    return _factor(scale, dtype) * moveaxis(drawn.reshape((*others, shape[axis])), len(others), axis)


def _initializer(name: str, default: Any, draw: Draw) -> Initializer:
    """The function for users: dtype and shape are checked, and `draw(key, shape, dtype)` is called."""

    def initialize(key: Any, shape: Sequence[int], dtype: Any = None, out_sharding: Any = None) -> Any:
        if out_sharding is not None:
            return in_sharding(out_sharding, initialize, key, shape, dtype)
        wanted = default if dtype is None else dtype
        found = canonicalize_dtype(float) if wanted is None else check_user_dtype(wanted, name)
        return draw(key, checked_shape(name, shape), found)

    initialize.__name__ = initialize.__qualname__ = name
    return api_boundary(initialize)


def _units(shape: tuple[int, ...], mode: str, in_axis: Axes, out_axis: Axes, batch_axis: Axes) -> float:
    """The average number of weights that meet in a unit."""
    try:
        into, out, batch = (_size(shape, axes) for axes in (in_axis, out_axis, batch_axis))
    except IndexError:
        raise ShapeError(
            f"variance_scaling: shape {shape} lacks an axis of in_axis={in_axis}, out_axis={out_axis}, "
            f"batch_axis={batch_axis}; weights need two axes, or in_axis and out_axis that exist"
        ) from None
    field = math.prod(shape) / max(into * out * batch, 1)
    fans = {"fan_in": into * field, "fan_out": out * field}
    fans["fan_avg"] = (fans["fan_in"] + fans["fan_out"]) / 2
    fans["fan_geo_avg"] = math.sqrt(fans["fan_in"] * fans["fan_out"])
    if mode not in fans:
        raise ValueError(f"variance_scaling: mode must be one of {', '.join(map(repr, fans))}, got {mode!r}")
    return fans[mode] or 1.0


def _size(shape: tuple[int, ...], axes: Axes) -> int:
    return math.prod(shape[axis] for axis in ((axes,) if isinstance(axes, int) else axes))


@sampler("shape", "dtype", name="normal")
def _normal(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    return normal_noise(key, shape, dtype)


@sampler("shape", "dtype", "distribution", name="variance_scaling")
def _scaled(key: Any, shape: tuple[int, ...], dtype: np.dtype, variance: Any, distribution: str) -> Any:
    draws = {"normal": _plain, "uniform": _flat, "truncated_normal": _cut}
    if distribution not in draws:
        names = ", ".join(map(repr, draws))
        raise ValueError(f"variance_scaling: distribution must be one of {names}, got {distribution!r}")
    return draws[distribution](key, shape, dtype, in_dtype(variance, dtype))


def _plain(key: Any, shape: tuple[int, ...], dtype: np.dtype, variance: Any) -> Any:
    return normal_noise(key, shape, dtype) * sqrt(variance)


def _flat(key: Any, shape: tuple[int, ...], dtype: np.dtype, variance: Any) -> Any:
    if not issubdtype(dtype, np.complexfloating):
        return uniform_between(key, shape, dtype, -1.0, 1.0) * sqrt(literal(3, dtype) * variance)
    u, direction = _disc(key, shape, part_dtype(dtype))
    return sqrt(2.0 * u) * direction * sqrt(variance)


def _cut(key: Any, shape: tuple[int, ...], dtype: np.dtype, variance: Any) -> Any:
    if not issubdtype(dtype, np.complexfloating):
        return _truncated_normal(key, -2.0, 2.0, shape, dtype) * (sqrt(variance) / literal(_TRUNCATED, dtype))
    u, direction = _disc(key, shape, part_dtype(dtype))
    radius = sqrt(-log(1.0 - (1.0 - math.exp(-4.0)) * u))
    return radius * direction * (sqrt(variance) / literal(_COMPLEX_TRUNCATED, dtype))


def _disc(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> tuple[Any, Any]:
    """Uniform numbers for the distance from 0, and random complex numbers of magnitude 1."""
    for_radius, for_angle = halves(split_p.bind(key, shape=(2,)))
    angle = literal(2 * math.pi, dtype) * uniform_between(for_angle, shape, dtype, 0.0, 1.0)
    return uniform_between(for_radius, shape, dtype, 0.0, 1.0), from_parts(cos(angle), sin(angle))


def _factor(x: Any, dtype: np.dtype) -> Any:
    """A number or an array in this dtype, outside of a composite too."""
    return convert(x, dtype) if hasattr(x, "dtype") else dtype.type(x)


_edge_of_face(globals())
