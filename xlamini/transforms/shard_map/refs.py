"""Refs as arguments of shard_map: each device has a ref of its shard, and the written shards form the new value."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core import Values, flatten_axes, flatten_from_user
from xlamini.core.pytree import structure
from xlamini.staging import has_refs, name_of
from xlamini.staging.trace.ref_arguments import OpenedRefs, pure


def with_parts_of_refs(
    run: Callable[..., Any], f: Callable[..., Any], args: Values, in_specs: Any, out_specs: Any, **options: Any
) -> Any:
    """`run(f, args, ...)` with refs replaced by their values; the final values are further outputs, written back."""
    refs = OpenedRefs(f"{name_of(f)} for shard_map", (tuple(args), {}))
    if not refs.cells:
        return run(f, args, in_specs=in_specs, out_specs=out_specs, **options)
    specs = flatten_axes("shard_map", (in_specs, None), structure(refs.tree), ("in_specs", "args"))
    every_out = (out_specs, refs.of_refs(specs))
    with refs.passed():
        out, last = run(pure(f), refs.tree[0], in_specs=in_specs, out_specs=every_out, **options)
    refs.store(last)
    return out


def refuse_refs(caller: str, args: Any) -> None:
    """TypeError for a ref among the arguments."""
    if has_refs(flatten_from_user(args)[0]):
        raise TypeError(f"{caller}: an argument is a ref; pass its value, as ref[...], and return the new one")
