"""First-order optimizers as triples of functions: init, update, and the params of a state.

    init_fun, update_fun, get_params = sgd(1e-2)
    opt_state = init_fun(params)
    opt_state = update_fun(step, grads, opt_state)      # params of the result: get_params(opt_state)

A step size is a number, or a schedule: a function from the step to a number.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from xlamini import numpy as jnp
from xlamini.core import register_pytree_node, tree_flatten, tree_leaves, tree_map, tree_unflatten
from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.numpy.arguments import as_operand

__all__ = [
    "JoinPoint", "Optimizer", "OptimizerState", "adagrad", "adam", "adamax", "clip_grads", "constant",
    "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule", "momentum", "nesterov", "optimizer",
    "pack_optimizer_state", "piecewise_constant", "polynomial_decay", "rmsprop", "rmsprop_momentum", "sgd", "sm3",
    "unpack_optimizer_state",
]  # fmt: skip

Schedule = Callable[[Any], Any]
"""A function from the number of a step to its size."""


@dataclass(frozen=True)
class OptimizerState:
    """The state of an optimizer, a pytree: the leaves of each param's state, the structures of params and of states."""

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


register_pytree_node(
    OptimizerState,
    lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
    lambda trees, children: OptimizerState(children[0], *trees),
)


class Optimizer(NamedTuple):
    """The functions of an optimizer; see the module's docstring."""

    init_fn: Callable[[Any], OptimizerState]
    update_fn: Callable[[Any, Any, OptimizerState], OptimizerState]
    params_fn: Callable[[OptimizerState], Any]


Rules = tuple[Callable[[Any], Any], Callable[[Any, Any, Any], Any], Callable[[Any], Any]]
"""An optimizer of one array: its state, the state after a step, and the array."""


def optimizer(opt_maker: Callable[..., Rules]) -> Callable[..., Optimizer]:
    """Decorator: an optimizer of one array becomes one of a pytree of arrays.

    `opt_maker(...)` returns `init(x0) -> state`, `update(step, grad, state) -> state` and `get_params(state) -> x`; a
    state is a pytree of arrays. TypeError, when the optimizer runs, for gradients of another structure than the params
    or an update that changes the structure of the state.

    >>> @optimizer
    ... def descent(step_size):
    ...     return lambda x: x, lambda i, g, x: x - step_size * g, lambda x: x
    >>> init_fun, update_fun, get_params = descent(0.5)
    >>> get_params(update_fun(0, {"w": 2.0}, init_fun({"w": 3.0})))
    {'w': 2.0}
    """

    @functools.wraps(opt_maker)
    def tree_opt_maker(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def tree_init(x0_tree: Any) -> OptimizerState:
            leaves, tree = tree_flatten(x0_tree)
            return _packed(tree, [init(x0) for x0 in leaves])

        def tree_update(i: Any, grad_tree: Any, opt_state: OptimizerState) -> OptimizerState:
            leaves, tree = tree_flatten(grad_tree)
            if tree != opt_state.tree_def:
                raise TypeError(
                    f"optimizer: grads must have the structure of the params, {opt_state.tree_def}; got {tree}"
                )
            states = [update(i, g, state) for g, state in zip(leaves, _states(opt_state), strict=True)]
            after = _packed(tree, states)
            for old, new in zip(opt_state.subtree_defs, after.subtree_defs, strict=True):
                if old != new:
                    raise TypeError(f"optimizer: update must return a state of the structure {old}, got {new}")
            return after

        def tree_get_params(opt_state: OptimizerState) -> Any:
            return tree_unflatten(opt_state.tree_def, [get_params(state) for state in _states(opt_state)])

        return Optimizer(tree_init, tree_update, tree_get_params)

    return tree_opt_maker


def _packed(tree: Any, states: Sequence[Any]) -> OptimizerState:
    flat = [tree_flatten(state) for state in states]
    return OptimizerState(tuple(leaves for leaves, _ in flat), tree, tuple(subtree for _, subtree in flat))


def _states(opt_state: OptimizerState) -> list[Any]:
    return list(map(tree_unflatten, opt_state.subtree_defs, opt_state.packed_state))


# --- optimizers


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
    """Gradient descent with momentum: the step is along the sum of all gradients, each decayed by `mass` per step."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * velocity, velocity

    return _with_zeros(1), update, _first


@optimizer
def nesterov(step_size: float | Schedule, mass: float) -> Rules:
    """Gradient descent with Nesterov's momentum."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, velocity = state
        velocity = mass * velocity + g
        return x - size(i) * (mass * velocity + g), velocity

    return _with_zeros(1), update, _first


@optimizer
def adagrad(step_size: float | Schedule, momentum: float = 0.9) -> Rules:
    """Adagrad (Duchi and others, 2011): gradients over the root of the sum of their squares, averaged over steps."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, mean = state
        squares = squares + jnp.square(g)
        mean = (1 - momentum) * (g * _inverse_root(squares)) + momentum * mean
        return x - size(i) * mean, squares, mean

    return _with_zeros(2), update, _first


@optimizer
def rmsprop(step_size: float | Schedule, gamma: float = 0.9, eps: float = 1e-8) -> Rules:
    """RMSProp: gradients over the root of a moving average of their squares."""
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
    """RMSProp with momentum."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, squares, velocity = state
        squares = squares * gamma + jnp.square(g) * (1 - gamma)
        velocity = momentum * velocity + size(i) * g / jnp.sqrt(squares + eps)
        return x - velocity, squares, velocity

    return _with_zeros(2), update, _first


@optimizer
def adam(step_size: float | Schedule, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Rules:
    """Adam (Kingma and Ba, 2015); `b1` and `b2` are the decays of the first and second moments."""
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
    """Adamax: Adam with the largest decayed gradient in place of the second moment."""
    size = make_schedule(step_size)

    def update(i: Any, g: Any, state: Any) -> Any:
        x, first, largest = state
        first = (1 - b1) * g + b1 * first
        largest = jnp.maximum(b2 * largest, jnp.abs(g))
        return x - size(i) * _unbiased(first, b1, i) / (largest + eps), first, largest

    return _with_zeros(2), update, _first


@optimizer
def sm3(step_size: float | Schedule, momentum: float = 0.9) -> Rules:
    """SM3 (Anil and others, 2019): Adagrad with one sum of squares for each row of each dimension of an array."""
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


# --- schedules


def constant(step_size: float) -> Schedule:
    """The same size at every step."""
    return lambda i: step_size


def exponential_decay(step_size: float, decay_steps: float, decay_rate: float) -> Schedule:
    """`step_size * decay_rate ** (i / decay_steps)`."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: float, decay_steps: float, decay_rate: float, staircase: bool = False
) -> Schedule:
    """`step_size / (1 + decay_rate * i / decay_steps)`; with `staircase` the quotient `i / decay_steps` is an integer.

    >>> inverse_time_decay(0.1, 3, 0.5)(3)
    0.06666666666666667
    """
    if staircase:
        return lambda i: step_size / (1 + decay_rate * jnp.floor(i / decay_steps))
    return lambda i: step_size / (1 + decay_rate * i / decay_steps)


def polynomial_decay(
    step_size: float, decay_steps: float, final_step_size: float, power: float = 1.0
) -> Schedule:
    """From `step_size` to `final_step_size` in `decay_steps` steps, by a power of the share that remains."""

    def schedule(step_num: Any) -> Any:
        remaining = 1 - jnp.minimum(step_num, decay_steps) / decay_steps
        return remaining**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: Sequence[float], values: Sequence[float]) -> Schedule:
    """The value i up to and including the boundary i, the last value after all of them.

    >>> [float(piecewise_constant([2, 4], [1.0, 0.5, 0.25])(i)) for i in (0, 2, 3, 9)]
    [1.0, 1.0, 0.5, 0.25]
    """
    limits, sizes = jnp.array(boundaries), jnp.array(values)
    if limits.ndim != 1 or sizes.ndim != 1:
        raise ValueError("piecewise_constant: boundaries and values must be sequences of numbers")
    if limits.size != sizes.size - 1:
        raise ValueError(
            f"piecewise_constant: values must be one more than boundaries, got {sizes.size} and {limits.size}"
        )
    return lambda i: sizes[jnp.sum(i > limits)]


def make_schedule(scalar_or_schedule: float | Schedule) -> Schedule:
    """A schedule as it is; a number as a constant one. TypeError for anything else."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if isinstance(scalar_or_schedule, str) or jnp.shape(as_operand("make_schedule", scalar_or_schedule)) != ():
        raise TypeError(f"a step size must be a number or a function of the step, got {scalar_or_schedule!r}")
    return constant(scalar_or_schedule)


# --- gradients


def l2_norm(tree: Any) -> Any:
    """The root of the sum of the squares of all numbers in a pytree of arrays.

    >>> float(l2_norm({"a": jnp.array([3.0]), "b": 4.0}))
    5.0
    """
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: float) -> Any:
    """The gradients, scaled to the norm `max_norm` if their norm is larger."""
    norm = l2_norm(grad_tree)
    return tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


# --- states as trees of states


class JoinPoint:
    """The state of one param, which is a leaf of the pytree that `unpack_optimizer_state` returns."""

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """A pytree of the structure of the params, with the state of each as a `JoinPoint`; for saving it by name."""
    return tree_unflatten(opt_state.tree_def, [JoinPoint(state) for state in _states(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The state of an optimizer from a pytree of `JoinPoint`; TypeError for other leaves."""
    leaves, tree = tree_flatten(marked_pytree)
    for leaf in leaves:
        if not isinstance(leaf, JoinPoint):
            raise TypeError(f"pack_optimizer_state: all leaves must be JoinPoint, got {type(leaf).__name__}")
    return _packed(tree, [leaf.subtree for leaf in leaves])


_edge_of_face(globals())
