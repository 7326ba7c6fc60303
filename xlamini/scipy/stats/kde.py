"""A density estimated from samples: the mean of normal densities about each of them (Parzen's windows)."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini import numpy as jnp, random
from xlamini.core import ShapeError, api_boundary_methods
from xlamini.numpy.arguments import as_operand, as_shape
from xlamini.primitives.promotion import promoting_freely
from xlamini.runtime import Array
from xlamini.scipy.linalg import solve_triangular
from xlamini.scipy.special import logsumexp, ndtr
from xlamini.tree_util import register_pytree_node_class
from xlamini.typing import ArrayLike

Bandwidth = str | ArrayLike | Callable[[Any], Any] | None


@register_pytree_node_class
class gaussian_kde:
    """A density estimated from `dataset`, of shape (n,), or (d, n) for vectors. A pytree.

    The kernels are normal densities with the covariance of the samples times a factor squared: `bw_method` is the
    factor, a function of this object that gives it, "scott" (the default) or "silverman". `weights` has shape (n,).
    ShapeError for data that do not fit, ValueError for fewer than two samples or another word.

    >>> gaussian_kde(jnp.array([-1.0, 1.0]))(0.0).round(3)
    Array([0.233], dtype=float32)
    """

    neff: Array
    dataset: Array
    weights: Array
    covariance: Array
    inv_cov: Array

    @promoting_freely
    def __init__(self, dataset: ArrayLike, bw_method: Bandwidth = None, weights: ArrayLike | None = None):
        data: Any = jnp.atleast_2d(as_operand("gaussian_kde", dataset))
        if data.ndim != 2 or data.shape[1] < 2:
            raise ValueError(f"gaussian_kde: two samples or more are needed, of shape (n,) or (d, n), not {data.shape}")
        if not isinstance(data.dtype, np.dtype):  # random keys
            raise TypeError(f"gaussian_kde: the samples must be numbers, got {data.dtype}")
        self.dataset = data.astype(jnp.promote_types(data.dtype, "float32"))
        counts = jnp.ones(self.n, self.dataset.dtype) if weights is None else as_operand("gaussian_kde", weights)
        if counts.shape != (self.n,):
            raise ShapeError(f"gaussian_kde: weights must have shape ({self.n},), one a sample; got {counts.shape}")
        self.weights = (counts / counts.sum()).astype(self.dataset.dtype)
        self.neff = 1 / (self.weights**2).sum()
        data_covariance = jnp.atleast_2d(jnp.cov(self.dataset, rowvar=True, bias=False, aweights=self.weights))
        factor = _factor(self, bw_method)
        self.covariance = (data_covariance * factor**2).astype(self.dataset.dtype)
        self.inv_cov = (jnp.linalg.inv(data_covariance) / factor**2).astype(self.dataset.dtype)

    @property
    def d(self) -> int:
        """How many components a sample has."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """How many samples there are."""
        return self.dataset.shape[1]

    def evaluate(self, points: ArrayLike) -> Array:
        """The density at points of shape (m,), or (d, m) for vectors."""
        return jnp.exp(self.logpdf(points))

    def pdf(self, x: ArrayLike) -> Array:
        """The density: `evaluate`."""
        return self.evaluate(x)

    __call__ = pdf

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the density."""
        x = self._points(x)
        return self._log_density(x, self.covariance)

    @promoting_freely
    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """The integral of this density times the normal one with this mean and covariance."""
        centre: Any = jnp.atleast_1d(jnp.squeeze(as_operand("integrate_gaussian", mean)))
        spread: Any = jnp.atleast_2d(as_operand("integrate_gaussian", cov))
        if centre.shape != (self.d,) or spread.shape != (self.d, self.d):
            raise ShapeError(
                f"integrate_gaussian: mean ({self.d},) and cov ({self.d}, {self.d}) are needed, got {centre.shape} and "
                f"{spread.shape}"
            )
        return jnp.exp(self._log_density(centre[:, None], self.covariance + spread)[0])

    @promoting_freely
    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """The probability between two numbers; ValueError for a density of vectors."""
        if self.d != 1:
            raise ValueError(f"integrate_box_1d: samples of one component are needed, these have {self.d}")
        deviation = jnp.sqrt(self.covariance[0, 0])
        below, above = ((jnp.asarray(end) - self.dataset[0]) / deviation for end in (low, high))
        return (self.weights * (ndtr(above) - ndtr(below))).sum()

    @promoting_freely
    def integrate_kde(self, other: gaussian_kde) -> Array:
        """The integral of the product with another such density; ShapeError for one of another dimension."""
        if other.d != self.d:
            raise ShapeError(f"integrate_kde: samples of {self.d} and of {other.d} components do not fit together")
        terms = other._log_density(self.dataset, self.covariance + other.covariance)
        return jnp.exp(logsumexp(terms, b=self.weights))

    def integrate_box(self, low_bounds: ArrayLike, high_bounds: ArrayLike, maxpts: int | None = None) -> Array:
        """Not there, because it needs an adaptive integration; NotImplementedError."""
        raise NotImplementedError("integrate_box: only integrals over one variable exist; use integrate_box_1d")

    @promoting_freely
    def resample(self, key: Array, shape: Any = ()) -> Array:
        """Random draws from the density, of shape (d, *shape)."""
        chosen, moved = random.split(key)
        shape = as_shape("resample", shape)
        index = random.choice(chosen, self.n, shape=shape, p=self.weights)
        mean = jnp.zeros(self.d, self.covariance.dtype)
        away = random.multivariate_normal(moved, mean, self.covariance, shape=shape, dtype=self.dataset.dtype)
        return self.dataset[:, index] + jnp.moveaxis(away, -1, 0)

    def set_bandwidth(self, bw_method: Bandwidth = None) -> None:
        """Not there, because the object is a value; NotImplementedError."""
        raise NotImplementedError("set_bandwidth: make a new gaussian_kde(dataset, bw_method) instead")

    def tree_flatten(self) -> tuple[tuple[Array, ...], None]:
        """The arrays in it, for transformations."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: tuple[Any, ...]) -> gaussian_kde:
        """The object with these arrays in it."""
        made = object.__new__(cls)
        made.neff, made.dataset, made.weights, made.covariance, made.inv_cov = children
        return made

    def _points(self, points: Any) -> Any:
        rows: Any = jnp.atleast_2d(as_operand("gaussian_kde", points))
        x = rows.astype(self.dataset.dtype)
        if x.shape[0] == self.d:
            return x
        if x.shape == (1, self.d):
            return x.reshape(self.d, 1)
        raise ShapeError(f"gaussian_kde: points of shape ({self.d}, m) are needed, got {x.shape}")

    @promoting_freely
    def _log_density(self, x: Any, covariance: Any) -> Any:
        """Of the mean of normal densities with this covariance about the samples, at points (d, m)."""
        factor = jnp.linalg.cholesky(covariance)
        samples, points = (solve_triangular(factor, each, lower=True) for each in (self.dataset, x))
        squares = ((points[:, :, None] - samples[:, None, :]) ** 2).sum(0)
        size = self.d / 2 * math.log(2 * math.pi) + jnp.log(jnp.diagonal(factor)).sum()
        return logsumexp(-squares / 2, axis=1, b=self.weights) - size


api_boundary_methods(gaussian_kde)


def _factor(kde: gaussian_kde, bw_method: Bandwidth) -> Any:
    """How much narrower a kernel is than the samples are spread."""
    if bw_method is None or (isinstance(bw_method, str) and bw_method == "scott"):
        return kde.neff ** (-1 / (kde.d + 4))
    if isinstance(bw_method, str):
        if bw_method != "silverman":
            raise ValueError(
                f"gaussian_kde: bw_method must be 'scott', 'silverman', a number or a function; got {bw_method!r}"
            )
        return (kde.neff * (kde.d + 2) / 4) ** (-1 / (kde.d + 4))
    return bw_method(kde) if callable(bw_method) else bw_method
