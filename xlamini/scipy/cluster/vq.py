"""Vector quantisation: each observation's nearest code."""
from __future__ import annotations

from xlamini import numpy as jnp
from xlamini.core import ShapeError
from xlamini.core.errors.api_boundary import edge_of_face as _edge_of_face
from xlamini.numpy.arguments import as_operand
from xlamini.primitives import promoted_inexact_dtypes
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike

__all__ = ["vq"]


@composite(static=("check_finite",))
def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The index of each observation's nearest code, the first one of several, and the distance to it.

    `obs` has shape (observations, features), `code_book` (codes, features); both may do without features.
    `check_finite` is there for programs that give it: an observation with a NaN is at distance NaN. ShapeError for
    arrays that do not fit.

    >>> vq(jnp.array([[1.0], [4.0]]), jnp.array([[0.0], [3.0]]))
    (Array([0, 1], dtype=int32), Array([1., 1.], dtype=float32))
    """
    given = as_operand("vq", obs), as_operand("vq", code_book)
    points, codes = promoted_inexact_dtypes(*given)
    if points.ndim != codes.ndim or points.ndim not in (1, 2) or points.shape[1:] != codes.shape[1:]:
        raise ShapeError(
            "vq: obs and code_book must have shapes (observations, features) and (codes, features), "
            f"got {points.shape} and {codes.shape}"
        )
    if points.ndim == 1:
        points, codes = points[:, None], codes[:, None]
    distances = jnp.sqrt((abs(points[:, None] - codes[None]) ** 2).sum(-1))
    return distances.argmin(1), distances.min(1)


_edge_of_face(globals())
