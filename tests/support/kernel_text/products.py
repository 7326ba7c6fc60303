"""Products of matrices: those of floats add up in float32, those of integers in the type of the result."""

from __future__ import annotations

import numpy as np

from tests.support.kernel_text.kinds import is_float


def product(letters: str, x: np.ndarray, y: np.ndarray, total: np.ndarray) -> np.ndarray:
    """The product by `numpy.einsum`'s letters, plus a total, in the total's dtype."""
    if not is_float(total.dtype):
        return (total + np.einsum(letters, x.astype(np.int64), y.astype(np.int64))).astype(total.dtype)
    wide = np.float64 if total.dtype == np.float64 else np.float32
    added = np.einsum(letters, x.astype(wide), y.astype(wide), optimize=True)
    return (total.astype(wide) + added).astype(total.dtype)
