"""Avals as JSON: `["float32", [2, 3], false]` is the dtype, the shape, and the weak type.

In the host's memory: `["float32", [2, 3], false, "Host"]`.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from xlamini.core import ShapedArray, as_dtype, float0
from xlamini.core.program.memory_space import DEVICE, Space
from xlamini.primitives.random.generators import RBG, THREEFRY, UNSAFE_RBG
from xlamini.runtime import KeyType

_OF_KEYS = {dtype.name: dtype for dtype in map(KeyType, (THREEFRY, RBG, UNSAFE_RBG))}


def written(avals: Iterable[ShapedArray]) -> list[Any]:
    """The avals as JSON."""
    return [[_name(a.dtype), list(a.shape), a.weak_type, *_space(a)] for a in avals]


def _space(aval: ShapedArray) -> list[str]:
    return [] if aval.memory_space is DEVICE else [aval.memory_space.name]


def read(avals: Iterable[Any]) -> list[ShapedArray]:
    """The avals that `written` encoded; TypeError or ValueError for malformed JSON."""
    return [_read(*aval) for aval in avals]


def _read(name: str, shape: list[int], weak: bool, space: str = DEVICE.name) -> ShapedArray:
    if space not in Space.__members__:
        raise ValueError(f"no memory space is called {space!r}")
    return ShapedArray(tuple(shape), dtype_of_name(name), weak, memory_space=Space[space])


def _name(dtype: Any) -> str:
    return "float0" if dtype == float0 else dtype.name


def dtype_of_name(name: str) -> Any:
    """The dtype of a name, which may be a random key's."""
    if name == "float0":
        return float0
    return _OF_KEYS[name] if name in _OF_KEYS else as_dtype(name)
