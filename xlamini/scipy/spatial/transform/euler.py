"""Euler angles: rotations about a sequence of coordinate axes, in any order.

`seq` names one to three axes: lower case for axes fixed in space, upper case for axes that rotate with the body. The
conversion back is that of Bernardes and Viollet, "Quaternion to Euler angles conversion" (2022).
"""
from __future__ import annotations

import functools
import math
from typing import Any

from xlamini import numpy as jnp
from xlamini.core import ShapeError
from xlamini.scipy.spatial.transform.quaternions import product

_DEGENERATE = 1e-7


def from_euler(seq: str, angles: Any, degrees: bool) -> Any:
    """The quaternions of rotations by `angles`, one along the last axis for each letter of `seq`."""
    axes, fixed = parsed(seq, "from_euler")
    if len(axes) == 1 and angles.shape[-1:] != (1,):
        angles = angles[..., None]
    if angles.shape[-1] != len(axes):
        raise ShapeError(f"from_euler: {seq!r} takes {len(axes)} angles along the last axis, got shape {angles.shape}")
    half = (jnp.deg2rad(angles) if degrees else angles) / 2
    turns = [_about(axis, half[..., i]) for i, axis in enumerate(axes)]
    return functools.reduce(lambda done, turn: product(turn, done) if fixed else product(done, turn), turns)


def to_euler(q: Any, seq: str, degrees: bool) -> Any:
    """Three angles along the last axis; where only the sum or difference of two is determined, the third is 0."""
    axes, fixed = parsed(seq, "as_euler")
    if len(axes) != 3 or axes[0] == axes[1] or axes[1] == axes[2]:
        raise ValueError(f"as_euler: seq must name three axes, neighbours different, as 'xyz' or 'ZXZ'; got {seq!r}")
    i, j, k = axes if fixed else axes[::-1]
    proper = i == k
    k = 3 - i - j if proper else k
    sign = (i - j) * (j - k) * (k - i) // 2
    a, b, c, d = q[..., 3], q[..., i], q[..., j], q[..., k] * sign
    if not proper:
        a, b, c, d = a - c, b + d, c + a, d - b
    middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    low, high = abs(middle) <= _DEGENERATE, abs(middle - math.pi) <= _DEGENERATE
    total, difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    first, third = total - difference, total + difference
    if not fixed:
        first, third = third, first
    turn = -1 if fixed else 1
    first = jnp.where(low, 2 * total, jnp.where(high, turn * 2 * difference, first))
    third = jnp.where(low | high, 0, third)
    if not proper:
        first, third = (first, third * sign) if fixed else (first * sign, third)
        middle = middle - math.pi / 2
    found = jnp.stack([_wrapped(first), middle, _wrapped(third)], -1)
    return jnp.rad2deg(found) if degrees else found


def parsed(seq: str, name: str) -> tuple[list[int], bool]:
    """The axes that `seq` names, and whether they stay where they are."""
    small = seq.lower()
    if not 1 <= len(seq) <= 3 or set(small) - set("xyz") or seq not in (small, small.upper()):
        raise ValueError(f"{name}: seq must be one to three of 'xyz', or of 'XYZ'; got {seq!r}")
    return ["xyz".index(letter) for letter in small], seq == small


def _about(axis: int, half: Any) -> Any:
    """The quaternion of a rotation about one axis, by twice the angle `half`."""
    sine, none = jnp.sin(half), jnp.zeros_like(half)
    return jnp.stack([*(sine if i == axis else none for i in range(3)), jnp.cos(half)], -1)


def _wrapped(angle: Any) -> Any:
    """Between -pi and pi, if it was between -3 pi and 3 pi."""
    return angle - 2 * math.pi * ((angle > math.pi).astype(angle.dtype) - (angle < -math.pi).astype(angle.dtype))
