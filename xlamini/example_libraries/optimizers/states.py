"""The state of an optimizer of a pytree, and that state as a pytree of the states of each param."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xlamini.core import register_pytree_node, tree_flatten, tree_unflatten


@dataclass(frozen=True)
class OptimizerState:
    """The state of an optimizer, a pytree: the leaves of each param's state, the structures of params and of states.

    >>> from xlamini.example_libraries.optimizers import momentum
    >>> state = momentum(0.1, mass=0.9).init_fn({"w": jnp.array([1.0, 2.0])})
    >>> tree.leaves(state)
    [Array([1., 2.], dtype=float32), Array([0., 0.], dtype=float32)]
    """

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


register_pytree_node(
    OptimizerState,
    lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
    lambda trees, children: OptimizerState(children[0], *trees),
)


def packed(tree: Any, states: Sequence[Any]) -> OptimizerState:
    """The state of all params, from their structure and the state of each."""
    flat = [tree_flatten(state) for state in states]
    return OptimizerState(tuple(leaves for leaves, _ in flat), tree, tuple(subtree for _, subtree in flat))


def states_of(opt_state: OptimizerState) -> list[Any]:
    """The state of each param."""
    return list(map(tree_unflatten, opt_state.subtree_defs, opt_state.packed_state))


class JoinPoint:
    """The state of one param, which is a leaf of the pytree that `unpack_optimizer_state` returns.

    >>> state, = JoinPoint((1.0, 0.0))
    >>> state
    (1.0, 0.0)
    """

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """A pytree of the structure of the params, with the state of each as a `JoinPoint`; for saving it by name.

    >>> from xlamini.example_libraries.optimizers import momentum
    >>> states = unpack_optimizer_state(momentum(0.1, mass=0.9).init_fn({"w": 2.0}))
    >>> states["w"].subtree
    (2.0, Array(0., dtype=float32, weak_type=True))
    """
    return tree_unflatten(opt_state.tree_def, [JoinPoint(state) for state in states_of(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The state of an optimizer from a pytree of `JoinPoint`; TypeError for other leaves.

    >>> from xlamini.example_libraries.optimizers import momentum
    >>> made = momentum(0.1, mass=0.9)
    >>> state = pack_optimizer_state({"w": JoinPoint([2.0, 0.0])})
    >>> made.params_fn(state)
    {'w': 2.0}
    """
    leaves, tree = tree_flatten(marked_pytree)
    for leaf in leaves:
        if not isinstance(leaf, JoinPoint):
            raise TypeError(f"pack_optimizer_state: all leaves must be JoinPoint, got {type(leaf).__name__}")
    return packed(tree, [leaf.subtree for leaf in leaves])
