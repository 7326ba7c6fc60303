"""sequential_vmap: a function that vmap runs on one example after the other."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.pytree import flatten, tree_map, unflatten
from xlamini.staging.call.higher_order import chosen, inverse, merged
from xlamini.transforms.control_flow.map import map as map_loop
from xlamini.transforms.custom.custom_vmap import custom_vmap


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """A function like `f` that vmap runs on one example after the other, in a loop; for what cannot be batched.

    >>> xlamini.vmap(sequential_vmap(lambda x, y: x + y), in_axes=(0, None))(xlamini.numpy.ones(3), 1.0)
    Array([2., 2., 2.], dtype=float32)
    """
    mapped = custom_vmap(f)

    @mapped.def_vmap
    def rule(axis_size: int, in_batched: Sequence[Any], *args: Any) -> tuple[Any, Any]:
        leaves, tree = flatten(args)
        marks = flatten(tuple(in_batched))[0]

        def of_one(examples: Sequence[Any]) -> Any:
            return mapped(*unflatten(tree, merged(marks, examples, chosen(leaves, inverse(marks)))))

        out = map_loop(of_one, chosen(leaves, marks))
        return out, tree_map(lambda _: True, out)

    return mapped
