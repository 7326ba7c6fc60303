"""Captured arrays as ndarrays, to be written into a file or a module."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from xlamini.core import float0
from xlamini.runtime import key_words
from xlamini.runtime.arrays.to_host import to_numpy


def ndarrays(captured: Iterable[Any]) -> list[np.ndarray]:
    """The values; of random keys their words, and of an array of dtype float0, which has no values, False."""
    return [_ndarray(key_words(x)) for x in captured]


def _ndarray(x: Any) -> np.ndarray:
    if not isinstance(x, np.ndarray):
        return to_numpy(x)
    return np.zeros(x.shape, bool) if x.dtype == float0 else x
