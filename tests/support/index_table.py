"""Indices in all of NumPy's notation, for arrays of shape (3, 4, 5): shared by test_indexing.py and test_at.py."""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini.primitives.shape.shape import sum_over

Array = np.ndarray


def put_on_device(x: Any) -> Any:
    return xlamini.device_put(x)


def numbers(*shape: int, dtype: Any = np.float32) -> Array:
    return np.arange(1, 1 + int(np.prod(shape)), dtype=dtype).reshape(shape)


def summed(x: Any) -> Any:
    return sum_over(x, range(x.ndim))


ROWS, J = np.array([2, 0, -1]), np.array([[1, -2], [0, 0]])
MASK = np.array([True, False, True])
MATRIX_MASK = np.array([[True, False, True, False]] * 2 + [[False] * 4])
NOTHING = np.array([], np.int32)

BASIC = [
    0,
    -1,
    np.int64(1),
    np.array(2),
    (),
    ...,
    None,
    (1, 2, -3),
    (..., 1),
    (1, ...),
    (0, ..., 1),
    (None, 1, None),
    (..., None),
    slice(None),
    slice(1, 3),
    slice(-2, None),
    slice(None, -1),
    slice(5, 9),
    slice(2, 1),
    slice(None, None, -1),
    slice(None, None, 2),
    slice(2, 0, -1),
    slice(-1, None, -2),
    (slice(0, 2), slice(1, None, 2), slice(None, None, -2)),
    (slice(None), -1, None, slice(1, 2)),
    (slice(1, 1), 0),
    (None, ..., None, 0),
]
ADVANCED = [
    ROWS,
    J,
    NOTHING,
    np.array([1], np.uint8),
    (ROWS, ROWS),
    (ROWS, None, ROWS),
    (slice(None), ROWS),
    (slice(None), ROWS, ROWS),
    (ROWS, slice(None), ROWS),
    (ROWS, ..., ROWS),
    (slice(None), ROWS, ..., ROWS),
    (..., ROWS),
    (J, ROWS[:2]),
    (J, 1),
    (1, J),
    (0, slice(None), ROWS),
    (slice(None), 0, ROWS),
    (slice(None, None, 2), ROWS),
    (slice(None, None, -1), ROWS),
    (ROWS, slice(3, None, -2)),
    (slice(None, None, -2), J, slice(1, 3)),
    (slice(1, 3), slice(None), ROWS),
    (None, ROWS, None),
    (ROWS, None, slice(2), None),
    (slice(0), ROWS),
    (NOTHING, slice(1, 3)),
    ([0, 1], [1, 1]),
    (slice(None), []),
]
MASKS = [
    MASK,
    MATRIX_MASK,
    (MASK, 1),
    (slice(None), MATRIX_MASK[0]),
    (MASK, slice(1, 3)),
    (MASK, np.array([0, 1])),
    (..., np.array([True, False, True, False, True])),
    (MASK, None, np.array([1, 0])),
    np.zeros(3, bool),
    True,
    False,
    np.True_,
    (None, True),
    (0, True),
    (slice(None), True),
    (0, slice(None), False),
    (MASK, True),
    np.ones((3, 4, 5), bool),
]
INDICES = [*BASIC, *ADVANCED, *MASKS]


def named(index: Any) -> str:
    return re.sub(r"\s+|array|slice|dtype=|None", lambda m: "N" if m[0] == "None" else "", repr(index))[:40]


each_index = pytest.mark.parametrize("index", INDICES, ids=named)


def traced(index: Any) -> tuple[Callable[..., Any], list[Any]]:
    """The index as a function of its integer arrays and numbers, which are to be traced."""
    items = index if isinstance(index, tuple) else (index,)
    is_dynamic = [isinstance(i, int | np.integer | np.ndarray) and np.asarray(i).dtype.kind in "iu" for i in items]
    leaves = [np.asarray(i) for i, dynamic in zip(items, is_dynamic, strict=True) if dynamic]

    def rebuilt(*values: Any) -> Any:
        remaining = iter(values)
        return tuple(next(remaining) if d else i for i, d in zip(items, is_dynamic, strict=True))

    return rebuilt, leaves
