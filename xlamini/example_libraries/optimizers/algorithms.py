"""Optimizers of one array, which the decorator makes optimizers of pytrees."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from xlamini import numpy as jnp
from xlamini.example_libraries.optimizers.declaration import Rules, optimizer
from xlamini.example_libraries.optimizers.schedules import Schedule, make_schedule


@optimizer
def sgd(step_size: float | Schedule) -> Rules:
    """Stochastic gradient descent.

    >>> init_fun, update_fun, get_params = sgd(0.1)
    >>> get_params(update_fun(0, jnp.array(2.0), init_fun(jnp.array(1.0))))
    Array(0.8, dtype=float32, weak_type=True)
    """
    size = make_schedule(step_size)
    return _itself, lambda i, g, x: x - size(i) * g, _itself


@optimizer
def momentum(step_size: float | Schedule, mass: float) -> Rules:
    """Gradient descent with momentum: the step is along the sum of all gradients, each decayed by `mass` per step.

    >>> init_fun, update_fun, get_params = momentum(0.5, mass=0.5)
    >>> state = init_fun(jnp.array([1.0, 2.0]))
    >>> for step in range(2):
    ...     state = update_fun(step, get_params(state), state)  # the gradient of x * x / 2 is x
    >>> get_params(state)
    Array([0., 0.], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * velocity, velocity

    return _with_zeros(1), update, _first


@optimizer
def nesterov(step_size: float | Schedule, mass: float) -> Rules:
    """Gradient descent with Nesterov's momentum.

    >>> init_fun, update_fun, get_params = nesterov(0.5, mass=0.5)
    >>> state = init_fun(jnp.array([1.0, 2.0]))
    >>> for step in range(2):
    ...     state = update_fun(step, get_params(state), state)  # the gradient of x * x / 2 is x
    >>> get_params(state)
    Array([-0.0625, -0.125 ], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * (mass * velocity + g), velocity

    return _with_zeros(1), update, _first


@optimizer
def adagrad(step_size: float | Schedule, momentum: float = 0.9) -> Rules:
    """Adagrad (Duchi and others, 2011): gradients over the root of the sum of their squares, averaged over steps.

    >>> init_fun, update_fun, get_params = adagrad(0.5)
    >>> state = init_fun(jnp.array([1.0, 2.0]))
    >>> for step in range(2):
    ...     state = update_fun(step, get_params(state), state)  # the gradient of x * x / 2 is x
    >>> get_params(state)
    Array([0.8705625, 1.870095 ], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, mean = state
        squares = squares + jnp.square(g)
        mean = (1 - momentum) * (g * _inverse_root(squares)) + momentum * mean
        return x - size(i) * mean, squares, mean

    return _with_zeros(2), update, _first


@optimizer
def rmsprop(step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8) -> Rules:
    """RMSProp: gradients over the root of a moving average of their squares.

    >>> init_fun, update_fun, get_params = rmsprop(0.5)
    >>> state = init_fun(jnp.array([1.0, 2.0]))
    >>> for step in range(2):
    ...     state = update_fun(step, get_params(state), state)  # the gradient of x * x / 2 is x
    >>> get_params(state)
    Array([0.24478173, 0.07801685], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares = state
        squares = squares * gamma + jnp.square(g) * (1 - gamma)
        return x - size(i) * g / jnp.sqrt(squares + eps), squares

    return _with_zeros(1), update, _first


@optimizer
def rmsprop_momentum(
    step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> Rules:
    """RMSProp with momentum.

    >>> init_fun, update_fun, get_params = rmsprop_momentum(0.5)
    >>> state = init_fun(jnp.array([1.0, 2.0]))
    >>> for step in range(2):
    ...     state = update_fun(step, get_params(state), state)  # the gradient of x * x / 2 is x
    >>> get_params(state)
    Array([-1.178243, -1.345008], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, velocity = state
        squares = squares * gamma + jnp.square(g) * (1 - gamma)
        velocity = momentum * velocity + size(i) * g / jnp.sqrt(squares + eps)
        return x - velocity, squares, velocity

    return _with_zeros(2), update, _first


@optimizer
def adam(step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Rules:
    """Adam (Kingma and Ba, 2015); `b1` and `b2` are the decays of the first and second moments.

    >>> init_fun, update_fun, get_params = adam(0.5)
    >>> state = init_fun(jnp.array([1.0, 2.0]))
    >>> for step in range(2):
    ...     state = update_fun(step, get_params(state), state)  # the gradient of x * x / 2 is x
    >>> get_params(state)
    Array([0.03391775, 1.0087206 ], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, first, second = state
        first = (1 - b1) * g + b1 * first
        second = (1 - b2) * jnp.square(g) + b2 * second
        unbiased, spread = _unbiased(first, b1, i), _unbiased(second, b2, i)
        return x - size(i) * unbiased / (jnp.sqrt(spread) + eps), first, second

    return _with_zeros(2), update, _first


@optimizer
def adamax(step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Rules:
    """Adamax: Adam with the largest decayed gradient in place of the second moment.

    >>> init_fun, update_fun, get_params = adamax(0.5)
    >>> state = init_fun(jnp.array([1.0, 2.0]))
    >>> for step in range(2):
    ...     state = update_fun(step, get_params(state), state)  # the gradient of x * x / 2 is x
    >>> get_params(state)
    Array([0.13121036, 1.0653551 ], dtype=float32)
    """
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, first, largest = state
        first = (1 - b1) * g + b1 * first
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        return x - size(i) * _unbiased(first, b1, i) / (largest + eps), first, largest

    return _with_zeros(2), update, _first


@optimizer
def sm3(step_size: float | Schedule, momentum: float = 0.9) -> Rules:
    """SM3 (Anil and others, 2019): Adagrad with one sum of squares for each row of each dimension of an array.

    >>> init_fun, update_fun, get_params = sm3(0.5)
    >>> state = init_fun(jnp.array([1.0, 2.0]))
    >>> for step in range(2):
    ...     state = update_fun(step, get_params(state), state)  # the gradient of x * x / 2 is x
    >>> get_params(state)
    Array([0.8705625, 1.870095 ], dtype=float32)
    """
    size = make_schedule(step_size)

    def init(x0: Any) -> Any:
        return x0, jnp.zeros_like(x0), [jnp.zeros(n, jnp.result_type(x0)) for n in jnp.shape(x0)]

    def update(i: Any, g: Any, state: Any) -> Any:
        x, mean, rows = state
        dims = range(x.ndim)
        bounds = [jnp.expand_dims(row, [d for d in dims if d != k]) for k, row in enumerate(rows)]
        least: Any = functools.reduce(jnp.minimum, bounds) if bounds else 0
        squares = least + jnp.square(g)
        mean = (1 - momentum) * (g * _inverse_root(squares)) + momentum * mean
        return x - size(i) * mean, mean, [squares.max([d for d in dims if d != k]) for k in dims]

    return init, update, _first


def _itself(x: Any) -> Any:
    return x


def _first(state: Any) -> Any:
    return state[0]


def _with_zeros(count: int) -> Callable[[Any], Any]:
    return lambda x0: (x0, *(jnp.zeros_like(x0) for _ in range(count)))


def _unbiased(average: Any, decay: float, i: Any) -> Any:
    """The moving average without its bias to zero, where it began."""
    return average / (1 - jnp.asarray(decay, average.dtype) ** (i + 1))


def _inverse_root(squares: Any) -> Any:
    return jnp.where(squares > 0, 1 / jnp.sqrt(jnp.where(squares > 0, squares, 1)), 0)
