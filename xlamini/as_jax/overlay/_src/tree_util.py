"""`jax._src.tree_util`."""

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from xlamini.as_jax.missing_names import fall_through
from xlamini.core.pytree import PyTreeDef, default_registry, first_difference
from xlamini.core.pytree.prefix import mismatch
from xlamini.tree_util import tree_structure as structure

__getattr__ = fall_through(__name__)


class _Entry(NamedTuple):
    """How the objects of one class come apart, and are made."""

    node_type: type

    def to_iter(self, node: Any) -> tuple[Iterable[Any], Any]:
        parts = default_registry.flatten_one_level(node)
        assert parts is not None
        return parts

    def from_iter(self, metadata: Any, children: Iterable[Any]) -> Any:
        leaves = list(children)
        data, leaf = (self.node_type, metadata), structure(0)
        node = PyTreeDef.from_node_data_and_children(default_registry, data, [leaf] * len(leaves))
        return node.unflatten(leaves)


class _Registry:
    """The classes that are pytree nodes, asked of jaxlib's registry each time."""

    def __contains__(self, node_type: type) -> bool:
        return default_registry.is_node(node_type)

    def __getitem__(self, node_type: type) -> _Entry:
        if node_type not in self:
            raise KeyError(node_type)
        return _Entry(node_type)


_registry: Any = _Registry()


def prefix_errors(prefix_tree: Any, full_tree: Any, is_leaf: Any = None) -> list[Callable[[str], ValueError]]:
    """A function that makes the error, given the name of the prefix, if `prefix_tree` is no prefix of `full_tree`."""
    if first_difference(prefix_tree, full_tree, prefix=True, is_leaf=is_leaf) is None:
        return []
    return [lambda name: mismatch("pytree", prefix_tree, full_tree, (name, "the full tree"), is_leaf)]
