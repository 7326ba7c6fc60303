"""`jax._src.tree_util`."""

from collections.abc import Callable
from typing import Any

from xlamini.as_jax.missing_names import fall_through
from xlamini.core.pytree import default_registry, first_difference
from xlamini.core.pytree.prefix import mismatch

__getattr__ = fall_through(__name__, "xlamini.tree_util")


class _Registry:
    """The classes that are pytree nodes, asked of jaxlib's registry each time."""

    def __contains__(self, node_type: type) -> bool:
        return default_registry.is_node(node_type)


_registry: Any = _Registry()


def prefix_errors(prefix_tree: Any, full_tree: Any, is_leaf: Any = None) -> list[Callable[[str], ValueError]]:
    """A function that makes the error, given the name of the prefix, if `prefix_tree` is no prefix of `full_tree`."""
    if first_difference(prefix_tree, full_tree, prefix=True, is_leaf=is_leaf) is None:
        return []
    return [lambda name: mismatch("pytree", prefix_tree, full_tree, (name, "the full tree"), is_leaf)]
