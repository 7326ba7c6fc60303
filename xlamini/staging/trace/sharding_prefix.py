"""Sharding prefixes: trees such as jit's `in_shardings`, expanded to one sharding for each leaf."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import (
    Avals,
    ShapedArray,
    ShardingError,
    Values,
    flatten_axes,
    keystr,
    tree_flatten_with_path,
    unflatten,
)
from xlamini.primitives.sharding_constraint import moved_to
from xlamini.runtime import Device, Sharding, named
from xlamini.runtime.meshes.current_mesh import as_here
from xlamini.runtime.meshes.named_sharding import split_in_type
from xlamini.runtime.sharding import as_sharding


def flatten_shardings(name: str, shardings: Any, tree: Any, of: str, avals: Avals) -> list[Any]:
    """The sharding of each leaf, None where the user left it open; `name` is the parameter of jit, for messages.

    Raises TypeError for an entry that is no sharding, ValueError for a tree that is no prefix, ShardingError for a
    sharding that an array of the leaf's type cannot have.
    """
    found = [_checked(name, s) for s in flatten_axes("jit", shardings, tree, (name, of))]
    for i, (sharding, aval) in enumerate(zip(found, avals, strict=True)):
        if sharding is not None:
            _check_splits(sharding, aval, lambda i=i: f"jit: {name} for {_leaf(tree, i, of)}")
    return found


def _check_splits(sharding: Any, aval: ShapedArray, what: Callable[[], str]) -> None:
    try:
        sharding.shard_shape(aval.shape)
    except ShardingError as error:
        raise ShardingError(f"{what()}: {error}") from None


def _leaf(tree: Any, number: int, of: str) -> str:
    """The name of a leaf in errors: `args[0]['w']`, or `output[1]`."""
    path, _ = tree_flatten_with_path(unflatten(tree, [object()] * tree.num_leaves))[0][number]
    if of != "args":
        return f"{of}{keystr(path)}"
    return f"{'kwargs' if path[0].idx else 'args'}{keystr(path[1:])}"


def _checked(name: str, x: Any) -> Any:
    if x is None:
        return None
    x = named(x, f"jit: {name} has", RuntimeError)
    if x is None:  # a format that leaves the sharding open
        return None
    if not isinstance(x, Sharding | Device):
        raise TypeError(f"jit: {name} must be shardings or None, got {x!r}; write NamedSharding(mesh, P('x'))")
    return as_sharding(x)


def resharded_avals(avals: Avals, shardings: Sequence[Any]) -> list[ShapedArray]:
    """The types of arguments after they have been moved to their shardings."""
    pairs = zip(avals, shardings, strict=True)
    return [a if s is None else a.with_sharding(split_in_type(s, a.ndim)) for a, s in pairs]


def all_moved(values: Values, shardings: Sequence[Any]) -> Values:
    """Values of a program, each moved to its sharding unless that is None."""
    if not shardings:
        return values
    return [x if s is None else moved_to(x, as_here(s)) for x, s in zip(values, shardings, strict=True)]
