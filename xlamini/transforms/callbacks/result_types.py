"""Callbacks with results: the declared result types, and the call."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xlamini.core import (
    ExtendedDType,
    ShapedArray,
    Values,
    canonicalize_dtype,
    enable_x64,
    flatten,
    flatten_from_user,
    keystr,
    tree_flatten_with_path,
)
from xlamini.core.dtypes import check_array_dtype
from xlamini.staging import ArgNames, check_callable, checked_avals, name_of, rebuilt
from xlamini.transforms.callbacks.callback import Callback
from xlamini.transforms.callbacks.host_function import HostFunction


def call_with_results(
    primitive: Callback,
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    args: Values,
    kwargs: Mapping[str, Any],
    sharding: Any,
    params: Mapping[str, Any],
) -> Any:
    """The results of the callback, in the structure of `result_shape_dtypes`."""
    name = primitive.face
    check_callable(name, callback)
    if sharding is not None:
        raise NotImplementedError(f"{name}: sharding is not supported; leave it out, the first device makes the call")
    leaves, in_tree = flatten_from_user((tuple(args), dict(kwargs)))
    names = ArgNames(callback, in_tree)
    called = f"{name_of(callback)} (the callback of {name})"
    checked_avals(leaves, names, called)
    out_tree = flatten(result_shape_dtypes)[1]
    function = HostFunction(callback, in_tree, out_tree=out_tree)
    avals = declared(result_shape_dtypes, name)
    outs = primitive.bind(*leaves, callback=function, result_avals=avals, mapped=(), **params)
    return rebuilt(out_tree, outs)


def declared(tree: Any, name: str) -> tuple[ShapedArray, ...]:
    """The avals of a pytree of ShapeDtypeStructs or arrays."""
    leaves = tree_flatten_with_path(tree)[0]
    return tuple(declared_aval(x, f"{name}: result_shape_dtypes{keystr(path)}") for path, x in leaves)


def declared_aval(x: Any, what: str) -> ShapedArray:
    """The aval of a ShapeDtypeStruct or an array, which is called `what` in messages."""
    shape, dtype = getattr(x, "shape", None), getattr(x, "dtype", None)
    if shape is None or dtype is None:
        raise TypeError(f"{what} is {x!r}, without shape and dtype; write ShapeDtypeStruct(shape, dtype)")
    if isinstance(dtype, ExtendedDType):
        raise TypeError(f"{what} is of dtype {dtype}; the called function returns numbers, such as the words of a key")
    check_array_dtype(dtype, what)
    if canonicalize_dtype(dtype) != dtype:
        raise ValueError(
            f"{what} is of dtype {dtype}, but 64-bit dtypes are off; write {canonicalize_dtype(dtype)}, or turn "
            f"{enable_x64.name} on"
        )
    return ShapedArray(tuple(shape), dtype)
