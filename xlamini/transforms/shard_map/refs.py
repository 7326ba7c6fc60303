"""Refs as arguments of shard_map: each device has a ref of its shard, and the written shards form the new value."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import Values, aval_of, flatten, flatten_axes, flatten_from_user, unflatten
from xlamini.core.ref_cells import Cell, is_holder


def with_parts_of_refs(
    run: Callable[..., Any], f: Callable[..., Any], args: Values, in_specs: Any, out_specs: Any, **options: Any
) -> Any:
    """`run(f, args, ...)` with refs replaced by their values; the final values are further outputs, written back."""
    leaves, tree = flatten_from_user((tuple(args), {}), is_holder)
    at = [i for i, x in enumerate(leaves) if is_holder(x)]
    if not at:
        return run(f, args, in_specs=in_specs, out_specs=out_specs, **options)
    refs = [leaves[i] for i in at]
    _check_different(refs)
    specs = flatten_axes("shard_map", (in_specs, None), tree, ("in_specs", "args"))
    values = unflatten(tree, [x.cell.read() if is_holder(x) else x for x in leaves])[0]
    of_values = _of_values(f, tree, dict(zip(at, refs, strict=True)))
    every_out = (out_specs, [specs[i] for i in at])
    out, last = run(of_values, values, in_specs=in_specs, out_specs=every_out, **options)
    for ref, value in zip(refs, last, strict=True):
        ref.cell.write(value)
    return out


def _of_values(f: Callable[..., Any], tree: Any, refs: dict[int, Any]) -> Callable[..., tuple[Any, list[Any]]]:
    """`f` as a function of values at the leaves of `refs`, which also returns the final values of these refs."""

    @functools.wraps(f)
    def of_values(*args: Any) -> tuple[Any, list[Any]]:
        leaves = flatten((args, {}))[0]
        for i, ref in refs.items():
            leaves[i] = type(ref)(Cell(leaves[i], aval_of(leaves[i])))
        out = f(*unflatten(tree, leaves)[0])
        return out, [leaves[i].cell.read() for i in refs]

    return of_values


def _check_different(refs: Sequence[Any]) -> None:
    if len({id(ref.cell) for ref in refs}) < len(refs):
        raise ValueError("shard_map: the same ref is passed twice; pass it once")


def refuse_refs(caller: str, args: Any) -> None:
    """TypeError for a ref among the arguments."""
    if any(map(is_holder, flatten_from_user(args, is_holder)[0])):
        raise TypeError(f"{caller}: an argument is a ref; pass its value, as ref[...], and return the new one")
