"""Refs among the arguments of shard_map: each device has a ref of its part, and the parts written make up the whole."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.pytree import flatten, flatten_from_user, unflatten
from xlamini.core.pytree.prefix import flatten_axes
from xlamini.core.ref_cells import Cell, is_holder
from xlamini.core.tracer import aval_of


def with_parts_of_refs(
    run: Callable[..., Any], f: Callable[..., Any], args: Sequence[Any], in_specs: Any, out_specs: Any, **options: Any
) -> Any:
    """`run(f, args, ...)`, where refs stand for their values, of which the last ones are further outputs."""
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
    """`f` of values in place of the refs at these leaves, which also returns what the refs hold in the end."""

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
