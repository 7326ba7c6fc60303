"""Where arrays are: device_put, block_until_ready; and forgetting what was compiled."""
from __future__ import annotations

from typing import Any

from xlamini.core.pytree import tree_leaves, tree_map
from xlamini.core.tracer import Tracer, leaked
from xlamini.runtime.put import device_put_value
from xlamini.transforms import one_program, recognised
from xlamini.transforms.jit import forget_all


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any:
    """Put the leaves of a tree onto a device or into a sharding; a NumPy array is copied.

    Without `device` arrays stay where they are, and other values go to the default device. Inside a traced function
    values stay where the program runs. Raises TypeError for a leaf that is no array and no number.

    >>> xlamini.device_put({"w": 1.5})
    {'w': Array(1.5, dtype=float32, weak_type=True)}
    """
    return tree_map(lambda leaf: _staged(leaf) if type(leaf) is Tracer else device_put_value(leaf, device), x)


def _staged(tracer: Tracer) -> Tracer:
    """A traced value stays where its program runs."""
    if not tracer.builder.is_tracing():
        raise leaked(tracer)
    return tracer


def block_until_ready(x: Any) -> Any:
    """Wait until all arrays in a tree have been computed, and return the tree."""
    for leaf in tree_leaves(x):
        if hasattr(leaf, "block_until_ready"):
            leaf.block_until_ready()
    return x


def clear_caches() -> None:
    """Forget all traces and compiled programs, of every jitted function."""
    one_program.clear()
    recognised.clear()
    forget_all()
