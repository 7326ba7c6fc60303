"""Rotation: one rotation in three dimensions, or a stack of them, as a pytree of quaternions."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xlamini import numpy as jnp, random as _random
from xlamini.core import ShapeError, api_boundary_methods
from xlamini.numpy.arguments import as_operand
from xlamini.runtime import Array
from xlamini.scipy.spatial.transform import euler, quaternions
from xlamini.tree_util import register_dataclass
from xlamini.typing import ArrayLike, DTypeLike


@register_dataclass
@dataclass(frozen=True, eq=False)
class Rotation:
    """A rotation, or several: unit quaternions `quat` of shape (4,) or (n, 4), the scalar last.

    Made with `from_quat`, `from_matrix`, `from_rotvec`, `from_euler` or `from_mrp`; `p * q` is the rotation q and then
    p. A pytree, so transformations accept it; derivatives exist at the identity too.

    >>> Rotation.from_euler("z", 90.0, degrees=True).apply(jnp.array([1.0, 0.0, 0.0])).round(3)
    Array([0., 1., 0.], dtype=float32)
    """

    quat: Array

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> Rotation:
        """Rotations from quaternions (x, y, z, w) along the last axis, which are normalized."""
        return cls(quaternions.normalized(_floating("from_quat", quat, 4)))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> Rotation:
        """Rotations from orthogonal matrices, shape (..., 3, 3)."""
        rows = _floating("from_matrix", matrix, 3)
        if rows.shape[-2:] != (3, 3):
            raise ShapeError(f"from_matrix: matrices of shape (..., 3, 3) are needed, got {rows.shape}")
        return cls(quaternions.from_matrix(rows))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> Rotation:
        """Rotations from vectors along the axis of rotation, as long as its angle."""
        rotvec = _floating("from_rotvec", rotvec, 3)
        return cls(quaternions.from_rotvec(jnp.deg2rad(rotvec) if degrees else rotvec))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> Rotation:
        """Rotations from modified Rodrigues parameters: the axis times the tangent of a quarter of the angle."""
        return cls(quaternions.from_mrp(_floating("from_mrp", mrp, 3)))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> Rotation:
        """Rotations about the axes that `seq` names, one after the other; angles along the last axis, one a letter.

        Lower case names axes fixed in space, upper case axes that rotate with the body. ValueError for another `seq`,
        ShapeError for another number of angles.
        """
        return cls(euler.from_euler(seq, _floating("from_euler", angles, None), degrees))

    @classmethod
    def identity(cls, num: int | None = None, dtype: DTypeLike = float) -> Rotation:
        """No rotation, or `num` of them."""
        one = jnp.array([0, 0, 0, 1], dtype)
        return cls(one if num is None else jnp.tile(one, (num, 1)))

    @classmethod
    def random(cls, random_key: Array, num: int | None = None) -> Rotation:
        """A rotation, or `num` of them, each equally likely."""
        return cls(quaternions.normalized(_random.normal(random_key, (4,) if num is None else (num, 4))))

    @classmethod
    def concatenate(cls, rotations: Sequence[Rotation]) -> Rotation:
        """Join several rotations in one stack."""
        return cls(jnp.concatenate([jnp.atleast_2d(r.quat) for r in rotations]))

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """The quaternions (x, y, z, w), or (w, x, y, z); with `canonical` those with w > 0 of the two there are."""
        quat = quaternions.canonical(self.quat) if canonical else self.quat
        return jnp.roll(quat, 1, -1) if scalar_first else quat

    def as_matrix(self) -> Array:
        """Matrices, shape (..., 3, 3)."""
        return quaternions.to_matrix(self.quat)

    def as_rotvec(self, degrees: bool = False) -> Array:
        """Vectors along the axes of rotation, as long as the angles, at most pi."""
        rotvec = quaternions.to_rotvec(self.quat)
        return jnp.rad2deg(rotvec) if degrees else rotvec

    def as_mrp(self) -> Array:
        """Modified Rodrigues parameters."""
        return quaternions.to_mrp(self.quat)

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """Three angles along the last axis, about the axes that `seq` names."""
        return euler.to_euler(self.quat, seq, degrees)

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """Rotate vectors, shape (3,) or (n, 3): each by its rotation, or all by the one; `inverse` undoes it."""
        matrix = self.inv().as_matrix() if inverse else self.as_matrix()
        return jnp.matvec(matrix, _floating("apply", vectors, 3))

    def inv(self) -> Rotation:
        """The rotation back."""
        return Rotation(quaternions.inverse(self.quat))

    def magnitude(self) -> Array:
        """The angles, from 0 to pi."""
        return quaternions.angle(self.quat)

    def mean(self, weights: ArrayLike | None = None) -> Rotation:
        """The rotation from which these differ least, by squares (Markley et al., "Averaging quaternions", 2007)."""
        quat: Any = jnp.atleast_2d(self.quat)
        counts = jnp.ones(quat.shape[0], quat.dtype) if weights is None else as_operand("mean", weights)
        return Rotation(jnp.linalg.eigh(jnp.einsum("n,ni,nj->ij", counts, quat, quat))[1][:, -1])

    @property
    def single(self) -> bool:
        """True for one rotation, False for a stack."""
        return self.quat.ndim == 1

    def __mul__(self, other: Rotation) -> Rotation:
        return Rotation(quaternions.normalized(quaternions.product(*jnp.broadcast_arrays(self.quat, other.quat))))

    def __len__(self) -> int:
        if self.single:
            raise TypeError("len: one rotation has no length; only a stack of them has")
        return self.quat.shape[0]

    def __getitem__(self, indexer: Any) -> Rotation:
        if self.single:
            raise TypeError("one rotation cannot be indexed; only a stack of them can")
        return Rotation(self.quat[indexer])


api_boundary_methods(Rotation)


def _floating(name: str, x: Any, size: int | None) -> Any:
    """An array of floats, with this size along its last axis."""
    x = as_operand(name, x)
    if size is not None and x.shape[-1:] != (size,):
        raise ShapeError(f"{name}: {size} numbers are needed along the last axis, got shape {x.shape}")
    return x.astype(x.dtype if jnp.issubdtype(x.dtype, jnp.floating) else float)
