"""Tree structures as JSON: `{"tuple": ["*", {"dict": [["w", "*"]]}]}` is `(*, {'w': *})`.

Tuples, lists, dicts and None are built in. Any other class is written under a name that the user registers for it, both
where the file is written and where it is read. Reading a file never imports a class by name.
"""
from __future__ import annotations

import base64
import json
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, NamedTuple, TypeVar

from xlamini.core import PyTreeDef, example_of
from xlamini.core.pytree import default_registry, structure

T = TypeVar("T")

_LEAF = "*"
_NODES: dict[type, str] = {tuple: "tuple", list: "list", dict: "dict", OrderedDict: "OrderedDict"}
_KEYS = (str, int, float, bool, type(None))


class Registered(NamedTuple):
    """How the nodes of a class are serialized and deserialized."""

    kind: type
    name: str
    write: Callable[[Any], bytes]
    read: Callable[[bytes], Any]
    build: Callable[[Any, Sequence[Any]], Any] | None


_by_class: dict[type, Registered] = {}
_by_name: dict[str, Registered] = {}


def register_pytree_node_serialization(
    nodetype: type[T],
    *,
    serialized_name: str,
    serialize_auxdata: Callable[[Any], bytes],
    deserialize_auxdata: Callable[[bytes], Any],
    from_children: Callable[[Any, Sequence[Any]], Any] | None = None,
) -> type[T]:
    """Register a class of pytree nodes for serialization, under a name; returns the class.

    `serialize_auxdata(metadata)` gives bytes, `deserialize_auxdata(bytes)` the metadata again. `from_children(metadata,
    children)` builds a node, if not the way in which the class was registered as a pytree node. Raises ValueError for a
    class that is no pytree node, and for a class or a name that is registered already.

    >>> import collections
    >>> register_pytree_node_serialization(  # doctest: +SKIP
    ...     collections.defaultdict, serialized_name="defaultdict of list",
    ...     serialize_auxdata=lambda metadata: ",".join(metadata[1]).encode(),
    ...     deserialize_auxdata=lambda data: (list, tuple(data.decode().split(","))))
    <class 'collections.defaultdict'>
    """
    if not from_children and not (isinstance(nodetype, type) and default_registry.is_node(nodetype)):
        raise ValueError(
            f"register_pytree_node_serialization: {_named(nodetype)} is no pytree node; call "
            "tree_util.register_pytree_node first"
        )
    return _register(Registered(nodetype, serialized_name, serialize_auxdata, deserialize_auxdata, from_children))


def register_namedtuple_serialization(nodetype: type[T], *, serialized_name: str) -> type[T]:
    """Register a class of named tuples for serialization, under a name; returns the class.

    Raises ValueError for another class, and for a class or a name that is registered already.

    >>> from typing import NamedTuple
    >>> class Moments(NamedTuple):
    ...     mean: float
    ...     spread: float
    >>> register_namedtuple_serialization(Moments, serialized_name="Moments").__name__
    'Moments'
    """
    if not _is_namedtuple(nodetype):
        raise ValueError(
            f"register_namedtuple_serialization: {_named(nodetype)} is no class of named tuples; for other nodes there "
            "is register_pytree_node_serialization"
        )
    fields: Any = nodetype

    def check(data: bytes) -> None:
        if data and (given := json.loads(data)) != list(fields._fields):
            raise ValueError(f"{serialized_name!r} was written with the fields {', '.join(given)}; here it has others")

    def write(_: Any) -> bytes:
        return json.dumps(fields._fields).encode()

    return _register(Registered(nodetype, serialized_name, write, check, None))


def _register(new: Registered) -> Any:
    if new.kind in _by_class:
        raise ValueError(f"{_named(new.kind)} is registered already, as {_by_class[new.kind].name!r}")
    if new.name in _by_name:
        raise ValueError(f"the name {new.name!r} is taken already, by {_named(_by_name[new.name].kind)}")
    _by_class[new.kind] = _by_name[new.name] = new
    return new.kind


def _is_namedtuple(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def written(tree: PyTreeDef, what: str) -> Any:
    """A structure as JSON; ValueError, beginning with `what`, for a node of an unregistered class."""
    node = tree.node_data()
    if node is None:
        return _LEAF
    (kind, metadata), children = node, [written(child, what) for child in tree.children()]
    if kind in _by_class:
        known = _by_class[kind]
        data = base64.b64encode(_bytes_of(known, metadata)).decode()
        return {"node": [known.name, data, children]}
    if kind is type(None):
        return None
    if kind not in _NODES:
        raise ValueError(f"{what}: a {_named(kind)} cannot be written into a file: {_advice(kind)}")
    if metadata is None:
        return {_NODES[kind]: children}
    return {_NODES[kind]: list(zip(_checked(metadata, what), children, strict=True))}


def _bytes_of(known: Registered, metadata: Any) -> bytes:
    data = known.write(metadata)
    if not isinstance(data, bytes | bytearray):
        raise TypeError(
            f"serialize_auxdata of {known.name!r} must return bytes, but returned a {type(data).__name__}; end it with "
            ".encode()"
        )
    return data


def _checked(keys: Sequence[Hashable], what: str) -> Sequence[Hashable]:
    for key in keys:
        if type(key) not in _KEYS:
            raise ValueError(f"{what}: a dict with the key {key!r} cannot be written into a file; make the key a str")
    return keys


def _advice(kind: type) -> str:
    if _is_namedtuple(kind):
        return f"call export.register_namedtuple_serialization({kind.__name__}, serialized_name='...') first"
    return f"call export.register_pytree_node_serialization({kind.__name__}, serialized_name='...', ...) first"


def read(data: Any) -> PyTreeDef:
    """The structure that `written` encoded; ValueError for malformed JSON and for an unregistered name."""
    if data == _LEAF:
        return structure(0)
    if data is None:
        return structure(None)
    if isinstance(data, dict) and len(data) == 1:
        ((name, inside),) = data.items()
        if name in _READERS:
            return _READERS[name](inside)
    raise ValueError(f"{str(data)[:60]!r} is no structure of containers")


def read_optional(data: Any) -> PyTreeDef | None:
    """The structure, or None if it was not written."""
    return None if data is False else read(data)


def _made(kind: type, metadata: Any, children: Sequence[Any]) -> PyTreeDef:
    return PyTreeDef.from_node_data_and_children(default_registry, (kind, metadata), list(map(read, children)))


def _in_order(keys: Iterable[Any]) -> list[Any]:
    """The keys of a dict, which a pytree has in their order; ValueError or TypeError for others."""
    found = list(keys)
    if found != sorted(set(found)):
        raise ValueError(f"{str(found)[:60]} are not the keys of a dict in their order")
    return found


def _keyed(kind: type, order: Callable[[Any], Any]) -> Callable[[Any], PyTreeDef]:
    return lambda pairs: _made(kind, order(key for key, _ in pairs), [child for _, child in pairs])


def _read_node(inside: Any) -> PyTreeDef:
    name, data, children = inside
    known = _by_name.get(name)
    if known is None:
        raise ValueError(
            f"it has a container that was registered as {name!r}, which is not registered here; register its class "
            "under this name before"
        )
    metadata = known.read(base64.b64decode(data))
    if known.build is None:
        return _made(known.kind, metadata, children)
    trees = map(read, children)
    return structure(known.build(metadata, [example_of(tree) for tree in trees]))


_READERS: dict[str, Callable[[Any], PyTreeDef]] = {
    "tuple": lambda children: _made(tuple, None, children),
    "list": lambda children: _made(list, None, children),
    "dict": _keyed(dict, _in_order),
    "OrderedDict": _keyed(OrderedDict, tuple),
    "node": _read_node,
}


def _named(kind: Any) -> str:
    return f"{kind.__module__}.{kind.__qualname__}" if isinstance(kind, type) else repr(kind)
