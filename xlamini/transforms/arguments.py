"""A user's arguments as flat leaves, each with the name a user knows it by."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from xlamini.core.avals import ShapedArray
from xlamini.core.pytree import keystr, tree_flatten_with_path, unflatten
from xlamini.core.tracer import aval_of

_SCALARS = (bool, int, float, complex, np.generic, np.ndarray)


class ArgNames(Sequence[str]):
    """Names of the leaves of `(args, kwargs)`: `x`, `params['w']`, `args[2]`; worked out when one is asked for.

    `positions` are the places that the args in the tree have in the user's call, if some were taken out.
    """

    def __init__(self, fun: Callable[..., Any], tree: Any, positions: Sequence[int] | None = None):
        self.fun, self.tree = fun, tree
        self.positions = positions
        self._names: list[str] | None = None

    def __len__(self) -> int:
        return self.tree.num_leaves

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...
    def __getitem__(self, index: Any) -> Any:
        if self._names is None:
            self._names = self._all()
        return self._names[index]

    def _all(self) -> list[str]:
        paths, _ = tree_flatten_with_path(unflatten(self.tree, range(self.tree.num_leaves)))
        parameters = parameter_names(self.fun)
        return [_name(path, parameters, self.positions) for path, _ in paths]


def parameter_names(fun: Callable[..., Any]) -> list[str]:
    """The names of a function's positional parameters; what `*args` takes is `args[0]`, `args[1]`…"""
    try:
        parameters = inspect.signature(inspect.unwrap(fun)).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _name(path: tuple, parameters: Sequence[str], positions: Sequence[int] | None) -> str:
    kind, first, rest = path[0].idx, path[1], path[2:]
    if kind == 1:
        return f"{first.key}{keystr(rest)}"
    position = first.idx if positions is None else positions[first.idx]
    base = parameters[position] if position < len(parameters) else f"args[{position - len(parameters)}]"
    return f"{base}{keystr(rest)}"


def avals_of(leaves: Sequence[Any], names: Sequence[str], fun_name: str) -> list[ShapedArray]:
    """The types of the leaves; TypeError for one that is no array and no number."""
    avals = []
    for i, x in enumerate(leaves):
        aval = getattr(x, "aval", None)
        avals.append(aval if aval is not None else _aval(x, names, i, fun_name))
    return avals


def _is_plain(x: Any) -> bool:
    """Whether `x` is a number or an ndarray of numbers."""
    return isinstance(x, _SCALARS) and getattr(x, "dtype", None) != np.dtype(object)


def _aval(x: Any, names: Sequence[str], index: int, fun_name: str) -> ShapedArray:
    if _is_plain(x):
        return aval_of(x)
    if hasattr(x, "shape") and hasattr(x, "dtype"):
        return ShapedArray(tuple(x.shape), np.dtype(x.dtype), getattr(x, "weak_type", False))
    raise TypeError(
        f"argument {names[index]!r} of {fun_name} is {_brief(x)} of type {type(x).__name__}, not an array or a number; "
        f"pass an array, or under jit mark it static: static_argnames={names[index].split('[')[0]!r}"
    )


def check_outputs(leaves: Sequence[Any], tree: Any, fun_name: str) -> None:
    """TypeError, with its path, for an output that is no array and no number."""
    for i, x in enumerate(leaves):
        if not hasattr(x, "aval") and not isinstance(x, _SCALARS):
            path, _ = tree_flatten_with_path(unflatten(tree, range(tree.num_leaves)))[0][i]
            raise TypeError(
                f"{fun_name} returned {_brief(x)} of type {type(x).__name__} at output{keystr(path)}; "
                "a traced function "
                "must return arrays, numbers, or containers of them"
            )


def _brief(x: Any) -> str:
    text = repr(x)
    return text if len(text) <= 40 else text[:37] + "..."


def name_of(fun: Callable[..., Any]) -> str:
    """The name a function goes by in programs and messages."""
    name = getattr(fun, "__name__", None)
    if name is not None:
        return name
    inner = getattr(fun, "func", None)
    return name_of(inner) if inner is not None else type(fun).__name__
