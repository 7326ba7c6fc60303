"""Sharding prefixes: trees such as jit's `in_shardings`, expanded to one sharding for each leaf, and applied."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import (
    Avals,
    Jaxpr,
    ShapedArray,
    ShardingError,
    Values,
    example_of,
    flatten_axes,
    keystr,
    rewrite,
    tree_flatten_with_path,
)
from xlamini.core.program.hi_types import has_hi
from xlamini.core.program.memory_space import Space, space_in_program
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives import in_space
from xlamini.primitives.placement.sharding_constraint import moved_to
from xlamini.runtime import Device, Sharding, named
from xlamini.runtime.arrays.layout import without_layout
from xlamini.runtime.meshes.current_mesh import as_here
from xlamini.runtime.meshes.named_sharding import typed_by
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
    if has_hi([aval]):
        raise TypeError(f"{what()}, of type {aval}: it is its arrays that have shardings; place these, and write None")
    try:
        sharding.shard_shape(aval.shape)
    except ShardingError as error:
        raise ShardingError(f"{what()}: {error}") from None


def _leaf(tree: Any, number: int, of: str) -> str:
    """The name of a leaf in errors: `args[0]['w']`, or `output[1]`."""
    path, _ = tree_flatten_with_path(example_of(tree))[0][number]
    if of != "args":
        return f"{of}{keystr(path)}"
    return f"{'kwargs' if path[0].idx else 'args'}{keystr(path[1:])}"


def _checked(name: str, x: Any) -> Any:
    if x is None:
        return None
    x = named(without_layout(x), f"jit: {name} has", RuntimeError)
    if x is None:  # a format that leaves the sharding open
        return None
    if not isinstance(x, Sharding | Device):
        raise TypeError(f"jit: {name} must be shardings or None, got {x!r}; write NamedSharding(mesh, P('x'))")
    return as_sharding(x)


def resharded_avals(avals: Avals, shardings: Sequence[Any]) -> list[ShapedArray]:
    """The types of arguments after they have been moved to their shardings."""
    pairs = zip(avals, shardings, strict=True)
    return [a if s is None else typed_by(s, a) for a, s in pairs]


def all_moved(values: Values, shardings: Sequence[Any]) -> Values:
    """Values of a program, each moved to its sharding and memory unless that is None."""
    if not shardings:
        return values
    return [x if s is None else _moved(x, as_here(s)) for x, s in zip(values, shardings, strict=True)]


def _moved(x: Any, sharding: Any) -> Any:
    return in_space(moved_to(x, sharding), space_in_program("jit", sharding.memory_kind))


def spaces_of(shardings: Sequence[Any]) -> tuple[Space | None, ...]:
    """The memory space that each of jit's `out_shardings` asks for; None for an output that was left open."""
    return tuple([s and space_in_program("jit: out_shardings", s.memory_kind) for s in shardings])


@rewrite
def in_spaces(jaxpr: Jaxpr, spaces: tuple[Space | None, ...]) -> Jaxpr:
    """The program with its outputs in these memory spaces, None for any; the program itself if they are."""
    if all(space in (None, aval.memory_space) for space, aval in zip(spaces, jaxpr.out_avals, strict=True)):
        return jaxpr

    def moved(*operands: Any) -> list[Any]:
        pairs = zip(evaluate(jaxpr, operands), spaces, strict=True)
        return [x if space is None else in_space(x, space) for x, space in pairs]

    return build(moved, jaxpr.in_avals, jaxpr.name)[0]
