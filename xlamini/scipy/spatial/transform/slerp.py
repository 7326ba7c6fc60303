"""Rotations between given ones, at constant speed: Shoemake, "Animating rotation with quaternion curves" (1985)."""
from __future__ import annotations

from dataclasses import dataclass

from xlamini import numpy as jnp
from xlamini.core import ShapeError, api_boundary_methods
from xlamini.numpy.arguments import as_operand
from xlamini.runtime import Array
from xlamini.scipy.spatial.transform.rotation import Rotation
from xlamini.tree_util import register_dataclass
from xlamini.typing import ArrayLike


@register_dataclass
@dataclass(frozen=True, eq=False)
class Slerp:
    """A turning body: its orientations at some times, made with `init`; called with times it gives those between.

    Before the first time and after the last one it is constant. A pytree.

    >>> turning = Slerp.init(jnp.array([0.0, 1.0]), Rotation.from_euler("z", jnp.array([0.0, 90.0]), degrees=True))
    >>> turning(0.5).as_euler("xyz", degrees=True).round(2)
    Array([ 0.,  0., 45.], dtype=float32)
    """

    times: Array
    timedelta: Array
    rotations: Rotation
    rotvecs: Array

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> Slerp:
        """Interpolate rotations at ascending times, at least two; ShapeError for other numbers of them."""
        times = as_operand("Slerp.init", times)
        if rotations.single or times.shape != (len(rotations),) or len(rotations) < 2:
            raise ShapeError(
                f"Slerp.init: at least two times and as many rotations are needed, got times of shape {times.shape} "
                f"and quaternions of shape {rotations.quat.shape}"
            )
        return cls(times, jnp.diff(times), rotations[:-1], (rotations[:-1].inv() * rotations[1:]).as_rotvec())

    def __call__(self, times: ArrayLike) -> Rotation:
        """The orientations at these times, a number or an array of one dimension."""
        times = as_operand("Slerp", times)
        before = (jnp.searchsorted(self.times, times) - 1).clip(0, len(self.rotations) - 1)
        share = ((times - self.times[before]) / self.timedelta[before]).clip(0, 1)
        return self.rotations[before] * Rotation.from_rotvec(self.rotvecs[before] * share[..., None])


api_boundary_methods(Slerp)
