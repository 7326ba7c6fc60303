"""`jax._src.tree_util`."""

from typing import Any

from xlamini.as_jax.missing_names import fall_through
from xlamini.core.pytree import default_registry

__getattr__ = fall_through(__name__, "xlamini.tree_util")


class _Registry:
    """The classes that are pytree nodes, asked of jaxlib's registry each time."""

    def __contains__(self, node_type: type) -> bool:
        return default_registry.is_node(node_type)


_registry: Any = _Registry()
