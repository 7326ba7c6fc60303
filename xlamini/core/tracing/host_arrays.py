"""Arrays of NumPy that become values: those of plain ndarrays, of subclasses, and of scalars.

A masked array is refused, as in JAX: its mask would be lost, and what it hides would be computed with.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np


def as_ndarray(x: Any) -> np.ndarray:
    """An array of NumPy, or whatever NumPy makes one of, as a plain ndarray; ValueError for a masked array."""
    made = np.asanyarray(x)  # what an object's `__array__` gives may be masked, too
    refuse_masked(made)
    return np.asarray(made)


def refuse_masked(x: Any) -> None:
    """ValueError for a masked array."""
    ma = sys.modules.get("numpy.ma")  # NumPy loads it when it is first used
    if ma is not None and isinstance(x, ma.MaskedArray):
        raise ValueError(
            "numpy masked arrays are not supported, as their masks would be lost; pass x.filled(value), or x.data and "
            "x.mask"
        )
