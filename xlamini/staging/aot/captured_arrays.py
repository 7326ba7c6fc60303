"""The arrays that a traced function captured, as ndarrays to be written into a file or a module."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from xlamini.core.dtypes import float0
from xlamini.runtime.keys import key_words
from xlamini.runtime.to_host import to_numpy


def ndarrays(captured: Iterable[Any]) -> list[np.ndarray]:
    """Their values; the words of random keys; False for what has dtype float0, and so no value."""
    return [_ndarray(key_words(x)) for x in captured]


def _ndarray(x: Any) -> np.ndarray:
    if not isinstance(x, np.ndarray):
        return to_numpy(x)
    return np.zeros(x.shape, bool) if x.dtype == float0 else x
