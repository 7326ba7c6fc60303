"""Types as JSON: `["float32", [2, 3], false]` is the dtype, the shape, and whether it is a weak type."""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.dtypes import float0
from xlamini.core.dtypes.table import as_dtype
from xlamini.primitives.generators import RBG, THREEFRY, UNSAFE_RBG
from xlamini.runtime.keys import KeyType

_OF_KEYS = {dtype.name: dtype for dtype in map(KeyType, (THREEFRY, RBG, UNSAFE_RBG))}


def written(avals: Iterable[ShapedArray]) -> list[Any]:
    """The types as JSON."""
    return [[_name(a.dtype), list(a.shape), a.weak_type] for a in avals]


def read(avals: Iterable[Any]) -> list[ShapedArray]:
    """The types that `written` wrote; TypeError or ValueError for what are none."""
    return [ShapedArray(tuple(shape), dtype_of_name(name), weak) for name, shape, weak in avals]


def _name(dtype: Any) -> str:
    return "float0" if dtype == float0 else dtype.name


def dtype_of_name(name: str) -> Any:
    """A dtype, or that of random keys, by its name."""
    if name == "float0":
        return float0
    return _OF_KEYS[name] if name in _OF_KEYS else as_dtype(name)
