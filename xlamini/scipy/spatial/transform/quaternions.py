"""Rotations as unit quaternions (x, y, z, w), along the last axis, and in other forms.

Where a formula is 0 / 0 at the identity, the series around it is used, so that derivatives exist there.
"""
from __future__ import annotations

from typing import Any

from xlamini import numpy as jnp

# Below this square of an angle three terms of a series are exact in float64.
_SMALL = 1e-5


def normalized(q: Any) -> Any:
    """Unit quaternions; NaN for a quaternion of zeros."""
    return q / jnp.sqrt((q * q).sum(-1, keepdims=True))


def product(p: Any, q: Any) -> Any:
    """The rotation q, and then p."""
    (a, b), (c, d) = (_parts(p), _parts(q))
    vector = b * c + d * a + jnp.cross(a, c)
    return jnp.concatenate([vector, b * d - (a * c).sum(-1, keepdims=True)], -1)


def inverse(q: Any) -> Any:
    vector, scalar = _parts(q)
    return jnp.concatenate([-vector, scalar], -1)


def canonical(q: Any) -> Any:
    """The one of q and -q, which are the same rotation, whose last component that is not zero is positive."""
    first = jnp.zeros(q.shape[:-1], bool)
    settled = first
    for i in (3, 0, 1, 2):
        component = q[..., i]
        first = jnp.where(settled, first, component < 0)
        settled = settled | (component != 0)
    return jnp.where(first[..., None], -q, q)


def from_rotvec(v: Any) -> Any:
    """The quaternion of a rotation about the vector v by its length."""
    square = (v * v).sum(-1, keepdims=True)
    angle = jnp.sqrt(jnp.where(square > _SMALL, square, 1))
    scale = jnp.where(square > _SMALL, jnp.sin(angle / 2) / angle, 0.5 - square / 48 + square**2 / 3840)
    cosine = jnp.where(square > _SMALL, jnp.cos(angle / 2), 1 - square / 8 + square**2 / 384)
    return jnp.concatenate([v * scale, cosine], -1)


def to_rotvec(q: Any) -> Any:
    vector, scalar = _parts(jnp.where(q[..., 3:] < 0, -q, q))
    square = (vector * vector).sum(-1, keepdims=True)
    length = jnp.sqrt(jnp.where(square > _SMALL, square, 1))
    tangent2 = square / jnp.where(square > _SMALL, 1, scalar * scalar)
    near = 2 / jnp.where(square > _SMALL, 1, scalar) * (1 - tangent2 / 3 + tangent2**2 / 5)
    return vector * jnp.where(square > _SMALL, 2 * jnp.arctan2(length, scalar) / length, near)


def angle(q: Any) -> Any:
    """The angle of the rotation, from 0 to pi."""
    vector, scalar = _parts(q)
    square = (vector * vector).sum(-1)
    length = jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)
    return 2 * jnp.arctan2(length, abs(scalar[..., 0]))


def from_mrp(p: Any) -> Any:
    """Quaternions from modified Rodrigues parameters: the axis times the tangent of a quarter of the angle."""
    square = (p * p).sum(-1, keepdims=True)
    return jnp.concatenate([2 * p, 1 - square], -1) / (1 + square)


def to_mrp(q: Any) -> Any:
    vector, scalar = _parts(jnp.where(q[..., 3:] < 0, -q, q))
    return vector / (1 + scalar)


def to_matrix(q: Any) -> Any:
    x, y, z, w = (q[..., i] for i in range(4))
    rows = (
        (x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), y * y - x * x - z * z + w * w, 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), z * z - x * x - y * y + w * w),
    )
    return jnp.stack([jnp.stack(row, -1) for row in rows], -2)


def from_matrix(m: Any) -> Any:
    """Quaternions from orthogonal matrices (Markley, "Unit quaternion from rotation matrix", 2008)."""
    a, b, c = (m[..., i, i] for i in range(3))
    trace = a + b + c
    sums = {(i, j): m[..., i, j] + m[..., j, i] for i, j in ((0, 1), (0, 2), (1, 2))}
    turns = [m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]]
    candidates = (
        (1 - trace + 2 * a, sums[0, 1], sums[0, 2], turns[0]),
        (sums[0, 1], 1 - trace + 2 * b, sums[1, 2], turns[1]),
        (sums[0, 2], sums[1, 2], 1 - trace + 2 * c, turns[2]),
        (turns[0], turns[1], turns[2], 1 + trace),
    )
    largest = jnp.stack([a, b, c, trace], -1).argmax(-1)[..., None]
    chosen = jnp.stack(candidates[3], -1)
    for i in range(3):
        chosen = jnp.where(largest == i, jnp.stack(candidates[i], -1), chosen)
    return normalized(chosen)


def _parts(q: Any) -> tuple[Any, Any]:
    """The vector, and the scalar with an axis of its own."""
    return q[..., :3], q[..., 3:]
