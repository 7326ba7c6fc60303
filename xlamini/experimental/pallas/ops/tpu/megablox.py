"""Products of rows in groups with a matrix for each group: `gmm`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini import numpy as jnp
from xlamini.core import ShapeError, check_user_dtype
from xlamini.nn.kernels.grouped_matmul import Grouped, grouped_matmul
from xlamini.numpy.arguments import as_operand

__all__ = ["gmm"]


def __dir__() -> list[str]:
    return sorted(__all__)


Tiling = tuple[int, int, int]


def gmm(
    lhs: Any,
    rhs: Any,
    group_sizes: Any,
    preferred_element_type: Any = np.float32,
    tiling: Tiling | Callable[[int, int, int], Tiling | None] | None = (128, 128, 128),
    group_offset: Any = None,
    existing_out: Any = None,
    transpose_rhs: bool = False,
    interpret: bool = False,
) -> Any:
    """The product of each row of `lhs` with the matrix of its group, of shape (m, n).

    Args:
      lhs: of shape (m, k).
      rhs: of shape (groups, k, n), or (groups, n, k) with `transpose_rhs`.
      group_sizes: ints of shape (groups,), how many rows each group has, in order; rows left over give zeros.
      preferred_element_type: the dtype of the result; sums are in float32.
      tiling: how many rows, summed features and columns a tile of a TPU has, or a function of m, k, n to it.
      interpret: accepted, and ignored.

    ShapeError for arrays that do not fit; NotImplementedError for `group_offset` and `existing_out`.
    Source: Gale et al., "MegaBlocks: Efficient Sparse Training with Mixture-of-Experts" (2022).

    >>> gmm(jnp.ones((3, 1)), jnp.array([[[2.0]], [[5.0]]]), jnp.array([1, 2]))[:, 0]
    Array([2., 5., 5.], dtype=float32)
    """
    if group_offset is not None:
        raise NotImplementedError("gmm: group_offset is not built; slice rhs and group_sizes instead")
    if existing_out is not None:
        raise NotImplementedError("gmm: existing_out is not built; add it to the result, or choose with jnp.where")
    lhs, rhs, sizes = (as_operand("gmm", x) for x in (lhs, rhs, group_sizes))
    _check(lhs, rhs, sizes, transpose_rhs)
    (m, k), n = lhs.shape, rhs.shape[1 if transpose_rhs else 2]
    tile = tiling(m, k, n) if callable(tiling) else tiling
    how = Grouped(check_user_dtype(preferred_element_type, "gmm"), transpose_rhs, tile or (128, 128, 128))
    return grouped_matmul(how, lhs, rhs, sizes.astype(jnp.int32))


def _check(lhs: Any, rhs: Any, sizes: Any, transposed: bool) -> None:
    fits = lhs.ndim == 2 and rhs.ndim == 3 and lhs.shape[1] == rhs.shape[2 if transposed else 1]
    if not fits or sizes.shape != rhs.shape[:1]:
        shown = "(groups, n, k)" if transposed else "(groups, k, n)"
        raise ShapeError(
            f"gmm: lhs must have shape (m, k), rhs {shown}, and group_sizes (groups,); got {lhs.shape}, {rhs.shape}, "
            f"{sizes.shape}"
        )
