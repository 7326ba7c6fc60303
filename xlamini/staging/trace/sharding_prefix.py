"""Trees of shardings, such as `in_shardings` of jit, one for each leaf of what they are about."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.errors import ShardingError
from xlamini.core.pytree import keystr, tree_flatten_with_path, unflatten
from xlamini.core.pytree.prefix import flatten_axes
from xlamini.primitives.sharding_constraint import moved_to
from xlamini.runtime.devices.platforms import Device
from xlamini.runtime.meshes.current_mesh import as_here, named
from xlamini.runtime.meshes.named_sharding import split_in_type
from xlamini.runtime.sharding import Sharding, as_sharding


def flatten_shardings(name: str, shardings: Any, tree: Any, of: str, avals: Sequence[ShapedArray]) -> list[Any]:
    """The sharding of each leaf, None where nothing is said; `name` is the argument of jit that it was.

    TypeError for what is no sharding, ValueError for a tree that is no prefix, ShardingError for one that an array of
    the leaf's type cannot have.
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
    """What a leaf is called in errors: `args[0]['w']`, or `output[1]`."""
    path, _ = tree_flatten_with_path(unflatten(tree, [object()] * tree.num_leaves))[0][number]
    if of != "args":
        return f"{of}{keystr(path)}"
    return f"{'kwargs' if path[0].idx else 'args'}{keystr(path[1:])}"


def _checked(name: str, x: Any) -> Any:
    if x is None:
        return None
    x = named(x, f"jit: {name} has", RuntimeError)
    if not isinstance(x, Sharding | Device):
        raise TypeError(f"jit: {name} must be shardings or None, got {x!r}; write NamedSharding(mesh, P('x'))")
    return as_sharding(x)


def as_asked(avals: list[ShapedArray], shardings: Sequence[Any]) -> list[ShapedArray]:
    """The types of arguments that are moved into shardings."""
    if not shardings:
        return avals
    return [a if s is None else a.divided(split_in_type(s, a.ndim)) for a, s in zip(avals, shardings, strict=True)]


def all_moved(values: Sequence[Any], shardings: Sequence[Any]) -> Sequence[Any]:
    """Values of a program, each in its sharding, if there is one."""
    if not shardings:
        return values
    return [x if s is None else moved_to(x, as_here(s)) for x, s in zip(values, shardings, strict=True)]
