"""Operands of fewer than 8 bits in a dtype of 8 or 16.

XLA's comparisons within sorts and reductions of pairs take elements in whole bytes: those of 2 bits come out wrong, or
the compiler fails. Every number of fewer than 8 bits has its place in a wider dtype.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini.core import Avals, aval_of, itemsize_bits
from xlamini.primitives.base.dtype_kinds import FLOAT, SIGNED, kind_of
from xlamini.primitives.elementwise.convert_element_type import convert


def has_part_bytes(avals: Avals) -> bool:
    """Whether some operand's elements have fewer than 8 bits."""
    return any(a.dtype != np.bool_ and itemsize_bits(a.dtype) < 8 for a in avals)


def in_whole_bytes(fun: Callable[..., Any], *operands: Any) -> Any:
    """`fun` of wider operands; results in the dtype of a widened operand at their position are narrowed again."""
    wide = [convert(x, _whole(aval_of(x).dtype)) for x in operands]
    out = fun(*wide)
    if not isinstance(out, list | tuple):
        return out
    narrow = dict(enumerate(zip(operands, wide, strict=True)))
    return [_back(y, *narrow[i]) if i in narrow else y for i, y in enumerate(out)]


def _back(result: Any, operand: Any, wide: Any) -> Any:
    return convert(result, aval_of(operand).dtype) if aval_of(result).dtype == aval_of(wide).dtype else result


def _whole(dtype: np.dtype) -> np.dtype:
    if dtype == np.bool_ or itemsize_bits(dtype) >= 8:
        return dtype
    kind = kind_of(dtype)
    return np.dtype(np.float16 if kind is FLOAT else np.int8 if kind is SIGNED else np.uint8)
