"""Avals as JSON: `["float32", [2, 3], false]` is the dtype, the shape, and the weak type.

In the host's memory: `["float32", [2, 3], false, "Host"]`. A symbolic size is a text, `["float32", ["2*b", 3], false]`.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from xlamini.core import ShapedArray, as_dtype, float0
from xlamini.core.program.memory_space import DEVICE, Space
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.primitives.random.generators import RBG, THREEFRY, UNSAFE_RBG
from xlamini.runtime import KeyType

_OF_KEYS = {dtype.name: dtype for dtype in map(KeyType, (THREEFRY, RBG, UNSAFE_RBG))}


def written(avals: Iterable[ShapedArray]) -> list[Any]:
    """The avals as JSON."""
    return [[_name(a.dtype), list(map(_written_size, a.shape)), a.weak_type, *_space(a)] for a in avals]


def _written_size(size: Any) -> int | str:
    return size.text if isinstance(size, SymbolicSize) else size


def _space(aval: ShapedArray) -> list[str]:
    return [] if aval.memory_space is DEVICE else [aval.memory_space.name]


SizeReader = Callable[[Any], Any]


def no_symbolic_size(text: Any) -> Any:
    """The reader of sizes for files without symbolic ones: a ValueError."""
    raise ValueError(f"{text!r:.40} is no size of an array")


def read(avals: Iterable[Any], size_of: SizeReader = no_symbolic_size) -> list[ShapedArray]:
    """The avals that `written` encoded; TypeError or ValueError for malformed JSON. `size_of` reads symbolic sizes."""
    return [_read(size_of, *aval) for aval in avals]


def _read(size_of: SizeReader, name: str, sizes: list[Any], weak: bool, space: str = DEVICE.name) -> ShapedArray:
    if space not in Space.__members__:
        raise ValueError(f"no memory space is called {space!r}")
    shape = tuple(_read_size(size, size_of) for size in sizes)
    return ShapedArray(shape, dtype_of_name(name), weak, memory_space=Space[space])


def _read_size(size: Any, size_of: SizeReader) -> Any:
    return size if type(size) is int and size >= 0 else size_of(size)


def _name(dtype: Any) -> str:
    return "float0" if dtype == float0 else dtype.name


def dtype_of_name(name: str) -> Any:
    """The dtype of a name, which may be a random key's."""
    if name == "float0":
        return float0
    return _OF_KEYS[name] if name in _OF_KEYS else as_dtype(name)
