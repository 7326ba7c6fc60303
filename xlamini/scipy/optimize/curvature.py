"""Approximations of the inverse Hessian in quasi-Newton methods: a matrix (BFGS), or the last steps (L-BFGS).

Both start from the identity and learn from a step and how the gradient changed, where that curves upwards.
"""
from __future__ import annotations

from typing import Any, NamedTuple

from xlamini import numpy as jnp
from xlamini.transforms.control_flow.fori_loop import fori_loop


class BfgsMatrix(NamedTuple):
    """The estimate as a matrix (Nocedal and Wright, 6.17)."""

    inverse: Any

    def direction(self, gradient: Any) -> Any:
        """The descent direction."""
        return -_product(self.inverse, gradient)

    def learned(self, step: Any, change: Any) -> BfgsMatrix:
        """The estimate after a step."""
        weight = _weight(step, change)
        turned = jnp.eye(len(step), dtype=step.dtype) - weight * jnp.outer(step, change)
        return BfgsMatrix(_product(_product(turned, self.inverse), turned.T) + weight * jnp.outer(step, step))


class LbfgsHistory(NamedTuple):
    """The estimate as the last steps, the last one last; unused rows have weight 0 (Nocedal and Wright, 7.4)."""

    steps: Any
    changes: Any
    weights: Any
    scale: Any

    def direction(self, gradient: Any) -> Any:
        """The descent direction."""
        count = len(self.weights)

        def backward(k: Any, state: Any) -> Any:
            rest, shares = state
            k = count - 1 - k
            share = self.weights[k] * (self.steps[k] @ rest)
            return rest - share * self.changes[k], shares.at[k].set(share)

        def forward(k: Any, rest: Any) -> Any:
            return rest + self.steps[k] * (shares[k] - self.weights[k] * (self.changes[k] @ rest))

        rest, shares = fori_loop(0, count, backward, (gradient, jnp.zeros_like(self.weights)))
        return -fori_loop(0, count, forward, self.scale * rest)

    def learned(self, step: Any, change: Any) -> LbfgsHistory:
        """The estimate after a step."""
        weight = _weight(step, change)
        new = step, change, weight
        steps, changes, weights = (
            jnp.concatenate([old[1:], row[None]]) for old, row in zip(self[:3], new, strict=True)
        )
        squares = change @ change
        scale = jnp.where(weight > 0, step @ change / jnp.where(squares == 0, 1, squares), self.scale)
        return LbfgsHistory(steps, changes, weights, scale)


def matrix(x: Any) -> BfgsMatrix:
    """The identity."""
    return BfgsMatrix(jnp.eye(len(x), dtype=x.dtype))


def history(x: Any, count: int) -> LbfgsHistory:
    """The identity, with room for `count` steps."""
    rows = jnp.zeros((count, len(x)), x.dtype)
    return LbfgsHistory(rows, rows, rows[:, 0] if len(x) else jnp.zeros(count, x.dtype), jnp.ones((), x.dtype))


def _weight(step: Any, change: Any) -> Any:
    """1 / (step @ change); 0 where the function does not curve upwards, and nothing is learned."""
    curve = step @ change
    return jnp.where(curve > 0, 1 / jnp.where(curve > 0, curve, 1), 0)


def _product(x: Any, y: Any) -> Any:
    return jnp.matmul(x, y, precision="highest")
