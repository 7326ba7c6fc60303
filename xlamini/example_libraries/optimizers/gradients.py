"""Gradients as a whole: their norm, and how it is bounded."""
from __future__ import annotations

from typing import Any

from xlamini import numpy as jnp
from xlamini.core import tree_leaves, tree_map


def l2_norm(tree: Any) -> Any:
    """The root of the sum of the squares of all numbers in a pytree of arrays.

    >>> float(l2_norm({"a": jnp.array([3.0]), "b": 4.0}))
    5.0
    """
    return jnp.linalg.norm(jnp.stack([jnp.linalg.norm(jnp.ravel(x)) for x in tree_leaves(tree)]))


def clip_grads(grad_tree: Any, max_norm: float) -> Any:
    """The gradients, a pytree of arrays, scaled to the norm `max_norm` if their norm is larger.

    >>> clip_grads({"w": jnp.array([3.0, 4.0])}, max_norm=1.0)
    {'w': Array([0.6, 0.8], dtype=float32)}
    """
    norm = l2_norm(grad_tree)
    return tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)
