"""Where two pytrees first differ, or what is wrong with one, as a sentence that a user can act on."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from xlamini.core.pytree.nodes import (
    DictKey,
    FlattenedIndexKey,
    GetAttrKey,
    KeyPath,
    PyTreeDef,
    SequenceKey,
    default_registry,
)

IsLeaf = Callable[[Any], bool]


def keystr(keys: KeyPath[Any], *, simple: bool = False, separator: str = "") -> str:
    """A key path as Python would write it; with `simple`, the bare keys.

    >>> keystr((DictKey("w"), SequenceKey(0)))
    "['w'][0]"
    >>> keystr((DictKey("w"), SequenceKey(0)), simple=True, separator="/")
    'w/0'
    """
    if not isinstance(separator, str):
        raise TypeError(f"keystr: separator must be a string, got {separator!r} of type {type(separator).__name__}")
    return separator.join(_bare(key) if simple else str(key) for key in keys)


def _bare(key: Any) -> str:
    match key:
        case SequenceKey():
            return str(key.idx)
        case DictKey() | FlattenedIndexKey():
            return str(key.key)
        case GetAttrKey():
            return key.name
    return str(key)


class _Node(NamedTuple):
    """One level of a pytree; a leaf has no type."""

    type: type | None
    metadata: Any
    keys: tuple[Any, ...]
    children: tuple[Any, ...]


def first_difference(
    a: Any,
    b: Any,
    names: tuple[str, str] = ("the first", "the second"),
    *,
    prefix: bool = False,
    is_leaf: IsLeaf | None = None,
) -> str | None:
    """The first place where the trees `a` and `b` (or their treedefs) differ, or None.

    With `prefix`, a leaf of `a` stands for any subtree of `b`.

    >>> first_difference({"w": [1, 2]}, {"w": [1]}, ("params", "grads"))
    "params['w'] is a list of length 2, but grads['w'] is a list of length 1"
    """
    if isinstance(a, PyTreeDef) and a == b:
        return None
    return next(_differences(_tree(a), _tree(b), (), names, prefix, is_leaf), None)


def _tree(x: Any) -> Any:
    return example_of(x) if isinstance(x, PyTreeDef) else x


LEAF = object()
"""What stands for the leaves of a treedef, as in JAX: classes that check their leaves let it pass, but no number."""


def example_of(treedef: PyTreeDef) -> Any:
    """A tree of this structure, to be inspected; each leaf is `LEAF`."""
    return treedef.unflatten([LEAF] * treedef.num_leaves)


def _differences(
    a: Any, b: Any, path: KeyPath, names: tuple[str, str], prefix: bool, is_leaf: IsLeaf | None
) -> Iterator[str]:
    one, other = _one_level(a, is_leaf), _one_level(b, None if prefix else is_leaf)
    if prefix and one.type is None:
        return
    if (one.type, one.keys, one.metadata) != (other.type, other.keys, other.metadata):
        yield _sentence(one, other, (a, b), keystr(path), names)
        return
    for key, x, y in zip(one.keys, one.children, other.children, strict=True):
        yield from _differences(x, y, (*path, key), names, prefix, is_leaf)


def _one_level(tree: Any, is_leaf: IsLeaf | None) -> _Node:
    level = None
    if is_leaf is None or not is_leaf(tree):
        level = default_registry.flatten_one_level_with_keys(tree)
    if level is None:
        return _Node(None, None, (), ())
    pairs, metadata = list(level[0]), level[1]
    keys = tuple(key for key, _ in pairs)
    fields = getattr(tree, "_fields", None)
    if isinstance(tree, tuple) and fields is not None:
        keys = tuple(map(GetAttrKey, fields))
    elif isinstance(tree, dict):
        metadata = None
    return _Node(type(tree), metadata, keys, tuple(child for _, child in pairs))


def _sentence(
    one: _Node, other: _Node, trees: tuple[Any, Any], path: str, names: tuple[str, str]
) -> str:
    first, second = (f"{name}{path}" for name in names)
    if one.type is dict and other.type is dict:
        return _key_sentence(one, other, first, second)
    says = [_describe(n, tree) for n, tree in zip((one, other), trees, strict=True)]
    if says[0] == says[1]:
        says = [
            f"{s} with metadata {n.metadata!r}" for s, n in zip(says, (one, other), strict=True)
        ]
    return f"{first} is {says[0]}, but {second} is {says[1]}"


def _key_sentence(one: _Node, other: _Node, first: str, second: str) -> str:
    keys, others = ({key.key: None for key in node.keys} for node in (one, other))
    only_one, only_other = [key for key in keys if key not in others], [key for key in others if key not in keys]
    if not only_other:
        return f"{first} has the keys {_some(only_one)}, which {second} lacks"
    if not only_one:
        return f"{second} has the keys {_some(only_other)}, which {first} lacks"
    return f"{first} has the keys {_some(only_one)}, where {second} has {_some(only_other)}"


def _some(keys: list[Any]) -> str:
    shown = ", ".join(repr(key) for key in itertools.islice(keys, 5))
    return f"{shown} and {len(keys) - 5} more" if len(keys) > 5 else shown


def _describe(node: _Node, tree: Any) -> str:
    if node.type is None:
        return "a leaf" if tree is LEAF else f"a leaf of type {type(tree).__qualname__}"
    if node.type is type(None):
        return "None"
    name = node.type.__qualname__
    if node.type in (list, tuple):
        return f"a {name} of length {len(node.children)}"
    children = "child" if len(node.children) == 1 else "children"
    return f"a {name} with {len(node.children)} {children}"


def explained(error: ValueError, tree: Any) -> ValueError:
    """The error for a tree that C++ could not flatten, in place of the one that C++ raised."""
    keys = _unsortable(tree) if "Comparator" in str(error) else None
    if keys is None:
        return error
    kinds = " and ".join(dict.fromkeys(type(k).__name__ for k in keys))
    return ValueError(
        f"the keys of a dict in a pytree must have an order, but {list(keys)} are of type {kinds}; use keys of one type"
    )


def _unsortable(tree: Any) -> list[Any] | None:
    """The keys of the first dict whose keys cannot be sorted."""
    if isinstance(tree, dict):
        try:
            sorted(tree)
        except TypeError:
            return list(tree)
    children = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list | tuple) else ()
    return next((keys for child in children if (keys := _unsortable(child)) is not None), None)
