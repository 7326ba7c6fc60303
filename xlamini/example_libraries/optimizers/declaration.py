"""How an optimizer is declared: as one of a single array, which the decorator makes one of a pytree of arrays."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from xlamini.core import tree_flatten, tree_unflatten
from xlamini.example_libraries.optimizers.states import OptimizerState, packed, states_of


class Optimizer(NamedTuple):
    """The functions of an optimizer: the state for params, the state after a step, and the params of a state.

    >>> from xlamini.example_libraries.optimizers import sgd
    >>> made = sgd(0.5)
    >>> state = made.update_fn(0, {"w": 1.0}, made.init_fn({"w": 3.0}))
    >>> made.params_fn(state)
    {'w': 2.5}
    """

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
            return packed(tree, [init(x0) for x0 in leaves])

        def tree_update(i: Any, grad_tree: Any, opt_state: OptimizerState) -> OptimizerState:
            leaves, tree = tree_flatten(grad_tree)
            if tree != opt_state.tree_def:
                raise TypeError(
                    f"optimizer: grads must have the structure of the params, {opt_state.tree_def}; got {tree}"
                )
            states = [update(i, g, state) for g, state in zip(leaves, states_of(opt_state), strict=True)]
            after = packed(tree, states)
            for old, new in zip(opt_state.subtree_defs, after.subtree_defs, strict=True):
                if old != new:
                    raise TypeError(f"optimizer: update must return a state of the structure {old}, got {new}")
            return after

        def tree_get_params(opt_state: OptimizerState) -> Any:
            return tree_unflatten(opt_state.tree_def, [get_params(state) for state in states_of(opt_state)])

        return Optimizer(tree_init, tree_update, tree_get_params)

    return tree_opt_maker
