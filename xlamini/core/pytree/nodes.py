"""Which classes are pytree nodes, and how they come apart; the registry is jaxlib's own.

A node splits into children, which may hold values, and metadata, which is compared with `==`.
"""

from __future__ import annotations

import collections
import dataclasses
import functools
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, Final, TypeVar

from jaxlib._jax import pytree as _pytree

from xlamini.core import jaxlib_types

__all__ = [
    "DictKey",
    "FlattenedIndexKey",
    "GetAttrKey",
    "KeyEntry",
    "KeyPath",
    "Partial",
    "PyTreeDef",
    "SequenceKey",
    "default_registry",
    "dispatch_registry",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "register_pytree_with_keys",
    "register_pytree_with_keys_class",
    "register_static",
    "static",
]

T = TypeVar("T")
KeyEntry = TypeVar("KeyEntry", bound=Hashable)
"""The type of a step of a key path: `DictKey`, `SequenceKey`, `GetAttrKey`, `FlattenedIndexKey`, or what a class of the
user's names its children by. It is hashable.

>>> paths, _ = xlamini.tree_util.tree_flatten_with_path({"w": [1, 2]})
>>> step: KeyEntry = paths[0][0][0]
>>> step
DictKey(key='w')
"""
KeyPath = tuple[KeyEntry, ...]
"""The type of the path from a tree to a leaf: a tuple of steps.

>>> def name(path: KeyPath, leaf):
...     return xlamini.tree_util.keystr(path)
>>> tree.map_with_path(name, {"w": [1, 2]})
{'w': ["['w'][0]", "['w'][1]"]}
"""

PyTreeDef = jaxlib_types.PyTreeDef
"""The structure of a pytree without its leaves: what `tree.structure` returns. It is hashable and compared by value.

>>> structure = tree.structure({"w": [1, 2], "b": 3})
>>> structure, structure.num_leaves
(PyTreeDef({'b': *, 'w': [*, *]}), 3)
>>> structure.unflatten([10, 20, 30])
{'b': 10, 'w': [20, 30]}
"""
DictKey = jaxlib_types.DictKey
"""The step of a path from a dict to its value at `key`.

>>> paths, _ = tree.flatten_with_path({"w": 1.0})
>>> paths
[((DictKey(key='w'),), 1.0)]
>>> xlamini.tree_util.keystr((DictKey("w"),))
"['w']"
"""
FlattenedIndexKey = jaxlib_types.FlattenedIndexKey
"""The step of a path to a child that has no name, of a class registered without keys: its number, `key`.

>>> xlamini.tree_util.keystr((FlattenedIndexKey(1),))
'[<flat index 1>]'
"""
GetAttrKey = jaxlib_types.GetAttrKey
"""The step of a path from an object to its attribute `name`, as of a dataclass or a named tuple.

>>> import collections
>>> Point = collections.namedtuple("Point", "x y")
>>> tree.flatten_with_path(Point(1, 2))[0]
[((GetAttrKey(name='x'),), 1), ((GetAttrKey(name='y'),), 2)]
"""
SequenceKey = jaxlib_types.SequenceKey
"""The step of a path from a list or tuple to its element `idx`.

>>> tree.flatten_with_path(["a", "b"])[0]
[((SequenceKey(idx=0),), 'a'), ((SequenceKey(idx=1),), 'b')]
"""

default_registry: Any = _pytree.default_registry()
"""The classes that are nodes of pytrees, and how each is flattened: jaxlib's own object, which its C++ reads too.

>>> default_registry.flatten({"w": [1, 2]})
([1, 2], PyTreeDef({'w': [*, *]}))
>>> default_registry.flatten_one_level(3) is None
True
"""
# A pickled treedef holds its registry by this name.
default_registry.__module__, default_registry.__name__ = __name__, "default_registry"

dispatch_registry: Final = jaxlib_types.PyTreeRegistry(
    enable_none=True, enable_tuple=True, enable_namedtuple=True, enable_list=True, enable_dict=True
)
"""What C++ dispatch takes arguments apart with: it sees through leaves that overlay an Array too."""


_registered: weakref.WeakSet[type] = weakref.WeakSet()
"""The classes registered here; jaxlib's registry counts every NamedTuple as a node."""


def register_pytree_node(
    nodetype: type[T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Hashable]],
    unflatten_func: Callable[[Any, Any], T],
    flatten_with_keys_func: Callable[[T], tuple[Iterable[tuple[Any, Any]], Hashable]] | None = None,
) -> None:
    """Make a class a pytree node.

    `flatten_func(node)` gives (children, metadata), `unflatten_func(metadata, children)` the node
    again, and `flatten_with_keys_func` ((key, child) pairs, metadata). ValueError when the class
    has been registered before; a NamedTuple may be, and its fields then count no more.

    >>> class Pair:
    ...     def __init__(self, a, b): self.a, self.b = a, b
    >>> register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, ab: Pair(*ab))
    """
    _check_new(nodetype)
    default_registry.register_node(nodetype, flatten_func, unflatten_func, flatten_with_keys_func)
    dispatch_registry.register_node(nodetype, _unfailing(flatten_func), unflatten_func)
    _registered.add(nodetype)


def _unfailing(flatten_func: Callable[[T], tuple[Iterable[Any], Hashable]]) -> Callable[[T], Any]:
    """For C++, which loses levels of the recursion limit if this raises: Python is asked about unknown metadata."""

    def flattened(node: T) -> tuple[Iterable[Any], Hashable]:
        try:
            children, metadata = flatten_func(node)
            return tuple(children), metadata
        except Exception:
            return (), object()

    return flattened


def _check_new(nodetype: type) -> None:
    if not isinstance(nodetype, type):
        raise TypeError(f"only a class can be a pytree node, but got {nodetype!r}")
    if nodetype in _registered or (default_registry.is_node(nodetype) and not hasattr(nodetype, "_fields")):
        raise ValueError(f"{nodetype.__qualname__} is a pytree node already; register it once only")


def register_pytree_with_keys(
    nodetype: type[T],
    flatten_with_keys: Callable[[T], tuple[Iterable[tuple[Any, Any]], Hashable]],
    unflatten_func: Callable[[Any, Any], T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Hashable]] | None = None,
) -> None:
    """Make a class a pytree node whose children have keys; see `register_pytree_node`.

    >>> class Pair:
    ...     def __init__(self, a, b): self.a, self.b = a, b
    >>> register_pytree_with_keys(
    ...     Pair, lambda p: (((GetAttrKey("a"), p.a), (GetAttrKey("b"), p.b)), None), lambda _, ab: Pair(*ab)
    ... )
    >>> [xlamini.tree_util.keystr(path) for path, _ in tree.leaves_with_path(Pair(1, [2]))]
    ['.a', '.b[0]']
    """

    def without_keys(node: T) -> tuple[Iterable[Any], Hashable]:
        pairs, metadata = flatten_with_keys(node)
        return [child for _, child in pairs], metadata

    register_pytree_node(nodetype, flatten_func or without_keys, unflatten_func, flatten_with_keys)


def register_pytree_node_class(cls: type[T]) -> type[T]:
    """Class decorator: a node by its methods `tree_flatten` and (class method) `tree_unflatten`.

    ValueError if the class is registered already, AttributeError if a method is missing.

    >>> @register_pytree_node_class
    ... class Scaled:
    ...     def __init__(self, value, factor):
    ...         self.value, self.factor = value, factor
    ...     def tree_flatten(self):
    ...         return (self.value,), self.factor
    ...     @classmethod
    ...     def tree_unflatten(cls, factor, children):
    ...         return cls(*children, factor)
    >>> doubled = tree.map(lambda x: 2 * x, Scaled(3.0, "m"))
    >>> doubled.value, doubled.factor
    (6.0, 'm')
    """
    _check_methods(cls, "tree_flatten", "tree_unflatten")
    methods: Any = cls
    register_pytree_node(cls, methods.tree_flatten, methods.tree_unflatten)
    return cls


def register_pytree_with_keys_class(cls: type[T]) -> type[T]:
    """Class decorator: a node by its methods `tree_flatten_with_keys` and `tree_unflatten`.

    ValueError if the class is registered already, AttributeError if a method is missing.

    >>> @register_pytree_with_keys_class
    ... class Box:
    ...     def __init__(self, value):
    ...         self.value = value
    ...     def tree_flatten_with_keys(self):
    ...         return ((GetAttrKey("value"), self.value),), None
    ...     @classmethod
    ...     def tree_unflatten(cls, _, children):
    ...         return cls(*children)
    >>> tree.leaves_with_path(Box(3))
    [((GetAttrKey(name='value'),), 3)]
    """
    _check_methods(cls, "tree_flatten_with_keys", "tree_unflatten")
    methods: Any = cls
    register_pytree_with_keys(
        cls,
        methods.tree_flatten_with_keys,
        methods.tree_unflatten,
        getattr(methods, "tree_flatten", None),
    )
    return cls


def _check_methods(cls: type, *names: str) -> None:
    for name in names:
        if not hasattr(cls, name):
            raise AttributeError(f"{cls.__qualname__} needs a method {name} to be a pytree node")


def register_dataclass(
    nodetype: type[T],
    data_fields: Sequence[str] | None = None,
    meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> type[T]:
    """Make a dataclass a pytree node; usable as a decorator.

    `data_fields` are children, `meta_fields` metadata, and `drop_fields` are left out. Without
    them, a field is metadata if it was made by `tree.static()`, else a child. ValueError where the
    fields are not those of the dataclass.

    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Point:
    ...     x: float
    """
    _check_new(nodetype)
    if data_fields is None and meta_fields is None and dataclasses.is_dataclass(nodetype):
        data_fields, meta_fields = _fields_by_kind(nodetype, drop_fields)
    if data_fields is None or meta_fields is None:
        raise TypeError(
            f"register_dataclass({nodetype.__qualname__}) needs data_fields and meta_fields; only "
            "for a dataclass may both be left out"
        )
    _check_fields(nodetype, data_fields, meta_fields, drop_fields)
    for registry in (default_registry, dispatch_registry):
        registry.register_dataclass_node(nodetype, list(data_fields), list(meta_fields))
    return nodetype


def _fields_by_kind(nodetype: Any, dropped: Sequence[str]) -> tuple[list[str], list[str]]:
    fields = [f for f in dataclasses.fields(nodetype) if f.init and f.name not in dropped]
    data = [f.name for f in fields if not f.metadata.get("static", False)]
    return data, [f.name for f in fields if f.name not in data]


def _check_fields(
    nodetype: Any, data: Sequence[str], meta: Sequence[str], dropped: Sequence[str]
) -> None:
    both = set(data) & set(meta)
    if both:
        raise ValueError(f"fields {sorted(both)} are in data_fields and in meta_fields")
    if not dataclasses.is_dataclass(nodetype):
        return
    expected = {f.name for f in dataclasses.fields(nodetype) if f.init} - set(dropped)
    given = {*data, *meta}
    if given != expected:
        raise ValueError(
            f"data_fields and meta_fields must hold the init fields of {nodetype!r}: "
            f"missing {sorted(expected - given)}, unknown {sorted(given - expected)}; "
            "fields that need no copy go in drop_fields"
        )


def static(**kwargs: Any) -> Any:
    """A dataclass field that is metadata of the pytree node, not a child.

    Takes the arguments of `dataclasses.field`.

    >>> @register_dataclass
    ... @dataclasses.dataclass
    ... class Layer:
    ...     weight: float
    ...     activation: str = static(default="relu")
    """
    metadata = {**(kwargs.pop("metadata", None) or {}), "static": True}
    return dataclasses.field(metadata=metadata, **kwargs)


def register_static(cls: type[T]) -> type[T]:
    """Class decorator: a node with no children, itself the metadata; it must be hashable.

    >>> @register_static
    ... @dataclasses.dataclass(frozen=True)
    ... class Options:
    ...     power: int
    >>> tree.leaves(Options(3))
    []
    >>> xlamini.jit(lambda x, options: x**options.power)(2.0, Options(3))
    Array(8., dtype=float32, weak_type=True)
    """
    register_pytree_node(cls, lambda node: ((), node), lambda node, _: node)
    return cls


class _Opaque:
    """A callable that functools.partial does not merge with."""

    def __init__(self, fun: Callable[..., Any]):
        self.fun = fun

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.fun(*args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return type(other) is _Opaque and self.fun == other.fun

    def __hash__(self) -> int:
        return hash(self.fun)

    def __repr__(self) -> str:
        return repr(self.fun)


class Partial(functools.partial[Any]):
    """`functools.partial` as a pytree node: the arguments are children, the function is metadata.

    >>> Partial(max, 3)(2)
    3
    """

    def __new__(cls, func: Callable[..., Any], *args: Any, **kw: Any) -> Partial:
        inner = _Opaque(func) if isinstance(func, functools.partial) else func
        return super().__new__(cls, inner, *args, **kw)


def _partial_with_keys(partial: Partial) -> tuple[tuple[tuple[Any, Any], ...], Hashable]:
    return (
        (GetAttrKey("args"), partial.args),
        (GetAttrKey("keywords"), partial.keywords),
    ), partial.func


def _with_dict_keys(pairs: Iterable[tuple[Any, Any]]) -> tuple[tuple[Any, Any], ...]:
    return tuple((DictKey(key), child) for key, child in pairs)


def _register_defaults() -> None:
    """The nodes of the standard library that jaxlib does not know by itself."""
    register_pytree_with_keys(
        collections.OrderedDict,
        lambda node: (_with_dict_keys(node.items()), tuple(node)),
        lambda keys, children: collections.OrderedDict(zip(keys, children, strict=True)),
    )
    register_pytree_with_keys(
        collections.defaultdict,
        lambda node: (
            _with_dict_keys((key, node[key]) for key in sorted(node)),
            (node.default_factory, tuple(sorted(node))),
        ),
        lambda meta, children: collections.defaultdict(
            meta[0], zip(meta[1], children, strict=True)
        ),
    )
    register_pytree_with_keys(
        Partial, _partial_with_keys, lambda func, parts: Partial(func, *parts[0], **parts[1])
    )


_register_defaults()
