"""Pytrees: nested containers of leaves, taken apart and put together by jaxlib's C++ registry.

`flatten`, `unflatten` and `structure` are for the library itself: the C++ functions, or next to it.
The functions named `tree_...` are the public ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Never, TypeVar, overload

from jaxlib._jax import pytree as _pytree

from xlamini.core.pytree.diff import IsLeaf, explained, first_difference
from xlamini.core.pytree.flattening import flatten, flatten_up_to, flatten_with_path
from xlamini.core.pytree.nodes import KeyPath, PyTreeDef, default_registry
from xlamini.core.pytree.prefix import columns, mismatch

if TYPE_CHECKING:
    import numpy as np

    from xlamini.runtime.arrays.array import Array

K = TypeVar("K")
T = TypeVar("T")
U = TypeVar("U")
Leaf = TypeVar("Leaf", bound="Array | np.ndarray | np.generic | complex")

_REQUIRED: Any = object()

unflatten: Callable[[PyTreeDef, Iterable[Any]], Any] = PyTreeDef.unflatten


def structure(tree: Any) -> PyTreeDef:
    return flatten(tree)[1]


_LEAF = structure(0)


def flatten_from_user(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], PyTreeDef]:
    """Like `flatten`, for a tree that may have no order, which is a ValueError, or no end, a RecursionError."""
    try:
        return flatten(tree, is_leaf)
    except ValueError as error:
        raise explained(error, tree) from None


@overload
def tree_flatten(tree: Leaf, is_leaf: IsLeaf | None = None) -> tuple[list[Leaf], PyTreeDef]: ...
@overload
def tree_flatten(
    tree: Mapping[Any, Leaf] | Sequence[Leaf], is_leaf: IsLeaf | None = None
) -> tuple[list[Leaf], PyTreeDef]: ...
@overload
def tree_flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], PyTreeDef]: ...
def tree_flatten(tree: Any, is_leaf: IsLeaf | None = None) -> tuple[list[Any], PyTreeDef]:
    """The leaves of a tree and its structure. None is a node without children.

    >>> tree_flatten({"b": 1, "a": (2, None)})
    ([2, 1], PyTreeDef({'a': (*, None), 'b': *}))
    """
    return flatten_from_user(tree, is_leaf)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of that structure with these leaves; ValueError if their number is wrong, TypeError for no structure.

    >>> leaves, treedef = tree_flatten({"b": 1, "a": (2, 3)})
    >>> tree_unflatten(treedef, [10 * leaf for leaf in leaves])
    {'a': (20, 30), 'b': 10}
    """
    check_treedef("tree.unflatten", "treedef", treedef)
    return treedef.unflatten(leaves)


def check_treedef(what: str, name: str, treedef: Any) -> None:
    """TypeError, naming the function and its argument, for what is no tree's structure."""
    if not isinstance(treedef, PyTreeDef):
        raise TypeError(
            f"{what}: {name} must be a tree's structure, got {treedef!r} of type {type(treedef).__name__}; write "
            "tree.structure(...)"
        )


@overload
def tree_leaves(tree: Leaf, is_leaf: IsLeaf | None = None) -> list[Leaf]: ...
@overload
def tree_leaves(tree: Mapping[Any, Leaf] | Sequence[Leaf], is_leaf: IsLeaf | None = None) -> list[Leaf]: ...
@overload
def tree_leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]: ...
def tree_leaves(tree: Any, is_leaf: IsLeaf | None = None) -> list[Any]:
    """The leaves of a tree.

    >>> tree_leaves({"b": 1, "a": (2, None)})
    [2, 1]
    """
    return flatten_from_user(tree, is_leaf)[0]


def tree_structure(tree: Any, is_leaf: IsLeaf | None = None) -> PyTreeDef:
    """The structure of a tree, comparable and hashable.

    >>> tree_structure({"b": 1, "a": (2, None)})
    PyTreeDef({'a': (*, None), 'b': *})
    >>> tree_structure([1, 2]) == tree_structure(["x", "y"])
    True
    """
    return flatten_from_user(tree, is_leaf)[1]


@overload
def tree_map(f: Callable[..., U], tree: Array, *rest: Any, is_leaf: IsLeaf | None = None) -> U: ...
@overload
def tree_map(
    f: Callable[..., Any],
    tree: Mapping[Any, np.ndarray] | Sequence[np.ndarray],
    *rest: Any,
    is_leaf: IsLeaf | None = None,
) -> Any: ...
@overload
def tree_map(
    f: Callable[..., U], tree: dict[K, Array], *rest: Any, is_leaf: IsLeaf | None = None
) -> dict[K, U]: ...
@overload
def tree_map(
    f: Callable[..., U], tree: list[Array], *rest: Any, is_leaf: IsLeaf | None = None
) -> list[U]: ...
@overload
def tree_map(f: Callable[..., Never], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any: ...
@overload
def tree_map(f: Callable[..., Array], tree: T, *rest: Any, is_leaf: IsLeaf | None = None) -> T: ...
@overload
def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any: ...
def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: IsLeaf | None = None) -> Any:
    """The tree of `f(leaf, *leaves of rest)`.

    The leaves of `tree` may be subtrees in `rest`. ValueError says where a tree of `rest` differs.

    >>> tree_map(lambda x, y: x + y, {"a": 1}, {"a": 10})
    {'a': 11}
    """
    if not callable(f):
        raise TypeError(f"tree.map: f must be a function, got {f!r} of type {type(f).__name__}; write map(f, tree)")
    leaves, treedef = flatten_from_user(tree, is_leaf)
    others = columns(treedef, tree, rest, is_leaf, "tree.map")
    return treedef.unflatten(map(f, leaves, *others))


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath[Any], Any]], PyTreeDef]:
    """The (key path, leaf) pairs of a tree and its structure.

    With `is_leaf_takes_path`, `is_leaf` is called with the path and the subtree.

    >>> tree_flatten_with_path({"a": [5]})[0]
    [((DictKey(key='a'), SequenceKey(idx=0)), 5)]
    """
    with_path = is_leaf if is_leaf is None or is_leaf_takes_path else lambda _, x: is_leaf(x)
    try:
        return flatten_with_path(tree, with_path)
    except ValueError as error:
        raise explained(error, tree) from None


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath[Any], Any]]:
    """The (key path, leaf) pairs of a tree; see `tree_flatten_with_path`.

    >>> tree_leaves_with_path({"a": [5]})
    [((DictKey(key='a'), SequenceKey(idx=0)), 5)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(
    f: Callable[..., Any],
    tree: Any,
    *rest: Any,
    is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:
    """The tree of `f(key path, leaf, *leaves of rest)`; see `tree_map`.

    >>> tree_map_with_path(lambda path, x: f"{len(path)}: {x}", {"a": [5]})
    {'a': ['2: 5']}
    """
    pairs, treedef = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = columns(treedef, tree, rest, None, "tree.map_with_path")
    return treedef.unflatten(
        f(path, leaf, *rest) for (path, leaf), *rest in zip(pairs, *others, strict=True)
    )


def tree_reduce(
    function: Callable[[Any, Any], Any],
    tree: Any,
    initializer: Any = _REQUIRED,
    is_leaf: IsLeaf | None = None,
) -> Any:
    """The leaves combined from the left, starting at `initializer`.

    >>> tree_reduce(lambda x, y: x + y, {"a": 1, "b": [2, 3]})
    6
    """
    start = () if initializer is _REQUIRED else (initializer,)
    return functools.reduce(function, tree_leaves(tree, is_leaf), *start)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any],
    tree: Any,
    *,
    identity: Any = _REQUIRED,
    is_leaf: IsLeaf | None = None,
) -> Any:
    """The leaves combined pairwise, to a depth of log2 of their number.

    TypeError for a tree without leaves when there is no `identity`.

    >>> tree_reduce_associative(lambda x, y: f"({x}{y})", list("abcd"))
    '((ab)(cd))'
    """
    leaves = tree_leaves(tree, is_leaf)
    if leaves:
        return _reduce_halves(operation, leaves)
    if identity is _REQUIRED:
        raise TypeError("tree.reduce_associative: the tree has no leaves; give an identity")
    return identity


def _reduce_halves(operation: Callable[[Any, Any], Any], items: Sequence[Any]) -> Any:
    if len(items) == 1:
        return items[0]
    middle = len(items) // 2
    halves = (_reduce_halves(operation, half) for half in (items[:middle], items[middle:]))
    return operation(*halves)


def tree_all(tree: Any, *, is_leaf: IsLeaf | None = None) -> bool:
    """Whether all leaves are true.

    >>> tree_all({"a": True, "b": [1, None]})
    True
    """
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(
    outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any
) -> Any:
    """A tree of trees turned inside out; `inner_treedef` is found in the tree when None.

    Of the tree only the number and the order of its leaves matter: it may be of other nodes than `outer_treedef`, such
    as a node whose children are the leaves of its values. TypeError if the number is wrong; ValueError, without
    `inner_treedef`, if `outer_treedef` is no prefix of the tree or has no leaves.

    >>> tree_transpose(tree_structure([0, 0]), None, [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}
    """
    check_treedef("tree.transpose", "outer_treedef", outer_treedef)
    inner = _inner_structure(outer_treedef, pytree_to_transpose) if inner_treedef is None else inner_treedef
    leaves, count = tree_leaves(pytree_to_transpose), inner.num_leaves
    if len(leaves) != outer_treedef.num_leaves * count:
        raise TypeError(f"tree.transpose: {_not_of_trees(outer_treedef, inner, pytree_to_transpose)}")
    return inner.unflatten(outer_treedef.unflatten(leaves[i::count]) for i in range(count))


def _inner_structure(outer: PyTreeDef, tree: Any) -> PyTreeDef:
    """The structure of the first of the inner trees."""
    try:
        inner_trees = flatten_up_to(outer, tree)
    except ValueError:
        raise mismatch("tree.transpose", outer, tree, ("outer_treedef", "the tree")) from None
    if not inner_trees:
        raise ValueError("tree.transpose: the outer tree has no leaves; give inner_treedef")
    return tree_structure(inner_trees[0])


def _not_of_trees(outer: PyTreeDef, inner: PyTreeDef, tree: Any) -> str:
    """Where a tree, whose number of leaves is wrong, differs from an outer tree of inner trees."""
    try:
        inner_trees = flatten_up_to(outer, tree)
    except ValueError:
        where = first_difference(outer, tree, ("outer_treedef", "the tree"), prefix=True)
        count, wanted = tree_structure(tree).num_leaves, outer.num_leaves * inner.num_leaves
        return where or f"the tree has {count} leaves, and must have {wanted}"
    wrong = next(x for x in inner_trees if tree_structure(x).num_leaves != inner.num_leaves)
    names = ("inner_treedef", "an inner tree")
    return first_difference(inner, wrong, names) or "an inner tree is larger than inner_treedef"


def all_leaves(iterable: Iterable[Any], is_leaf: IsLeaf | None = None) -> bool:
    """Whether no item of the iterable is a node.

    >>> all_leaves([1, 2]), all_leaves([1, (2,)])
    (True, False)
    """
    if is_leaf is None:
        return _pytree.all_leaves(default_registry, iterable)
    return all(flatten(item, is_leaf)[1] == _LEAF for item in iterable)


def flatten_one_level(tree: Any) -> tuple[Iterable[Any], Any]:
    """The children of a node and its metadata; ValueError for a leaf.

    >>> flatten_one_level({"b": [1, 2], "a": 3})
    ((3, [1, 2]), ('a', 'b'))
    >>> flatten_one_level(3)
    Traceback (most recent call last):
        ...
    ValueError: a leaf of type int has no children
    """
    return _one_level(default_registry.flatten_one_level(tree), tree)


def flatten_one_level_with_keys(tree: Any) -> tuple[Iterable[tuple[Any, Any]], Any]:
    """The (key, child) pairs of a node and its metadata; ValueError for a leaf.

    >>> pairs, metadata = flatten_one_level_with_keys({"b": [1, 2], "a": 3})
    >>> list(pairs)
    [(DictKey(key='a'), 3), (DictKey(key='b'), [1, 2])]
    """
    return _one_level(default_registry.flatten_one_level_with_keys(tree), tree)


def _one_level(level: Any, tree: Any) -> Any:
    if level is None:
        raise ValueError(f"a leaf of type {type(tree).__qualname__} has no children")
    return level


def is_tree_node(typ: type) -> bool:
    """Whether values of this class are pytree nodes.

    >>> is_tree_node(dict), is_tree_node(set)
    (True, False)
    """
    return default_registry.is_node(typ)


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Whether it is the structure of one leaf, or of a node without children; TypeError for no structure.

    >>> treedef_is_leaf(tree_structure(1.0)), treedef_is_leaf(tree_structure([1.0]))
    (True, False)
    """
    check_treedef("treedef_is_leaf", "treedef", treedef)
    return treedef.num_nodes == 1


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of a node's children; TypeError for no structure.

    >>> treedef_children(tree_structure([1, {"a": 2}]))
    [PyTreeDef(*), PyTreeDef({'a': *})]
    """
    check_treedef("treedef_children", "treedef", treedef)
    return treedef.children()


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees of these structures; TypeError for what is none.

    >>> treedef_tuple([tree_structure([1, 2]), tree_structure(3)])
    PyTreeDef(([*, *], *))
    """
    treedefs = list(treedefs)
    for treedef in treedefs:
        check_treedef("treedef_tuple", "each of treedefs", treedef)
    return _pytree.treedef_tuple(default_registry, treedefs)
