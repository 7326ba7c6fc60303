"""A user's function as a param of a callback: the conversion of its arguments, and the check of its results."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

import numpy as np

from xlamini.core import (
    Avals,
    ShapedArray,
    canonicalize_dtype,
    example_of,
    first_difference,
    flatten_from_user,
    issubdtype,
    keystr,
    result_type,
    tree_flatten_with_path,
    unflatten,
)
from xlamini.core.dtypes import is_array_dtype
from xlamini.core.tracing.host_arrays import as_ndarray
from xlamini.runtime import device_put_value
from xlamini.runtime.execution.call_failures import WrongResult
from xlamini.runtime.execution.callbacks import cpu
from xlamini.staging import name_of


class HostFunction:
    """A function of `(args, kwargs)` with the structure `in_tree`; `fixed` are the leaves that are no arrays.

    `out_tree` is the structure of its result; None for a function whose result is ignored. Two of them are equal if
    they call one function with equal fixed arguments.
    """

    fixed: tuple[tuple[int, Any], ...]
    fun: Callable[..., Any]
    in_tree: Any
    out_tree: Any

    def __init__(
        self, fun: Callable[..., Any], in_tree: Any, fixed: tuple[tuple[int, Any], ...] = (), out_tree: Any = None
    ):
        self.fun, self.in_tree, self.fixed, self.out_tree = fun, in_tree, fixed, out_tree
        self.__name__: str = name_of(fun)
        self._key = (_identity(fun), in_tree, tuple((i, _identity(x)) for i, x in fixed), out_tree)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return self.__name__

    def __call__(self, operands: Sequence[np.ndarray], avals: Avals) -> list[np.ndarray]:
        """Call the function with Arrays on the CPU; WrongResult unless the results have the types `avals`."""
        leaves = [device_put_value(x, cpu()) for x in operands]
        for i, x in self.fixed:
            leaves.insert(i, x)
        args, kwargs = unflatten(self.in_tree, leaves)
        out = self.fun(*args, **kwargs)
        return [] if self.out_tree is None else self._check_results(out, avals)

    def _check_results(self, out: Any, avals: Avals) -> list[np.ndarray]:
        example = example_of(self.out_tree)
        paths = _paths(example)
        if _paths(out) != paths:  # a list is accepted for a tuple, since their paths are equal
            where = first_difference(_with_tuples(example), _with_tuples(out), ("result_shape_dtypes", "the result"))
            raise WrongResult(f"returned another structure than result_shape_dtypes says: {where}")
        leaves = flatten_from_user(out)[0]
        return [_as_declared(x, aval, path) for x, aval, path in zip(leaves, avals, paths, strict=True)]


def _with_tuples(tree: Any) -> Any:
    """The pytree with every list replaced by a tuple."""
    if type(tree) is dict:
        return {key: _with_tuples(value) for key, value in tree.items()}
    return tuple(map(_with_tuples, tree)) if type(tree) in (list, tuple) else tree


def _paths(tree: Any) -> list[str]:
    return [keystr(path) for path, _ in tree_flatten_with_path(tree)[0]]


_WEAK = (int, float, complex)


def _as_declared(x: Any, aval: ShapedArray, path: str) -> np.ndarray:
    """A result as an ndarray of the declared type; 64-bit dtypes are narrowed while x64 is off."""
    array = _array(x)
    if array is None:
        raise WrongResult(f"returned {x!r} of type {type(x).__name__}{_at(path)}, which is no array")
    dtype = result_type(x, aval.dtype) if type(x) in _WEAK else canonicalize_dtype(array.dtype)
    if (array.shape, dtype) != (aval.shape, aval.dtype):
        text = ShapedArray(array.shape, dtype).str_short(short_dtypes=False)
        raise WrongResult(
            f"returned {text}{_at(path)}, but result_shape_dtypes says {aval.str_short(short_dtypes=False)}; change "
            "the one or the other"
        )
    if array.dtype == aval.dtype:
        return array
    with np.errstate(over="ignore"):
        narrow = array.astype(aval.dtype)
    lost = _lost(array, narrow)
    if lost.any():
        raise WrongResult(
            f"returned {array[lost].flat[0]}{_at(path)}, which {aval.dtype} does not hold; change the result, or "
            "declare a wider dtype, of 64 bits under enable_x64"
        )
    return narrow


def _lost(array: np.ndarray, narrow: np.ndarray) -> np.ndarray:
    """The mask of integers that have become others, and of numbers that have become infinite; floats are rounded."""
    if issubdtype(array.dtype, np.integer) and issubdtype(narrow.dtype, np.integer):
        return (narrow != array) | ((narrow < 0) != (array < 0))
    return np.isfinite(array) & ~np.isfinite(narrow)


def _array(x: Any) -> np.ndarray | None:
    """A value as an ndarray of a dtype that Arrays support, or None."""
    try:
        array = as_ndarray(x)
    except TypeError:
        return None
    return array if is_array_dtype(array.dtype) else None


def _at(path: str) -> str:
    return f" at output{path}" if path else ""


def _identity(x: Any) -> Any:
    """An identity key for caching."""
    if type(x) is MethodType:
        return id(x.__self__), x.__func__
    return x if isinstance(x, str) else id(x)
