"""The arguments of `pallas_call` in the form that the rest takes: the grid, the results, a spec for each array."""
from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from xlamini.core import ShapedArray, flatten
from xlamini.core.errors import ShapeError
from xlamini.core.pytree import structure
from xlamini.transforms.pallas.specs import BlockSpec, GridSpec, no_block_spec, static_int


def grid_spec_of(grid_spec: GridSpec | None, grid: Any, in_specs: Any, out_specs: Any, scratch: Any) -> GridSpec:
    """The grid, specs and scratch memory, given as one argument or as four; TypeError if they are given twice."""
    if grid_spec is None:
        return GridSpec(grid, in_specs, out_specs, scratch)
    if not isinstance(grid_spec, GridSpec):
        raise TypeError(f"pallas_call: grid_spec must be a GridSpec, got {grid_spec!r}; pass GridSpec(grid, in_specs)")
    given = {"grid": grid != (), "in_specs": in_specs is not no_block_spec, "out_specs": out_specs is not no_block_spec}
    twice = [name for name, is_given in {**given, "scratch_shapes": scratch != ()}.items() if is_given]
    if twice:
        raise TypeError(f"pallas_call: {', '.join(twice)} cannot be given beside grid_spec; pass it to the grid_spec")
    return grid_spec


def grid_sizes(grid: Any) -> tuple[int, ...]:
    """The sizes of the grid; TypeError for what is no int, ShapeError below 0."""
    sizes = (grid,) if not isinstance(grid, tuple | list) else grid
    try:
        found = tuple(map(operator.index, sizes))
    except TypeError:
        raise TypeError(
            f"pallas_call: the grid must be ints, got {grid!r}; a size that depends on an array is not built"
        ) from None
    if min(found, default=0) < 0:
        raise ShapeError(f"pallas_call: the sizes of the grid must be 0 or more, got {grid!r}")
    return found


def result_types(outs: Iterable[Any], axes: frozenset[Any]) -> list[ShapedArray]:
    """The types of the results, which vary along the axes; TypeError for what has no shape and dtype."""
    return [_result_type(out).update(vma=axes) for out in outs]


def _result_type(out: Any) -> ShapedArray:
    if not hasattr(out, "shape") or not hasattr(out, "dtype"):
        raise TypeError(
            f"pallas_call: out_shape must have a shape and a dtype, got {out!r}; pass ShapeDtypeStruct(shape, dtype)"
        )
    return ShapedArray(out.shape, out.dtype)


def check_prefetch(count: int, given: int) -> None:
    """TypeError if fewer arguments are given than are scalars to prefetch."""
    if count > given:
        raise TypeError(
            f"pallas_call: num_scalar_prefetch is {count}, but the call has {given} operands; pass the scalars first"
        )


def scratch_types(scratch: Any) -> list[Any]:
    """The kinds of the kernel's own buffers; TypeError for what is none."""
    found = flatten(scratch)[0]
    for each in found:
        if isinstance(each, type) or not hasattr(each, "ref_type"):
            raise TypeError(
                f"pallas_call: scratch_shapes must be buffers, got {each!r}; write pallas.tpu.VMEM((8, 128), "
                "'float32') or pallas.tpu.SemaphoreType.DMA"
            )
    return found


def check_operands(name: str, avals: Sequence[ShapedArray]) -> None:
    """TypeError for a random key, which no kernel holds."""
    for i, aval in enumerate(avals):
        if not isinstance(aval.dtype, np.dtype):
            raise TypeError(
                f"pallas_call: operand {i} of {name} is a random key, {aval.str_short(short_dtypes=False)}; pass "
                "random.key_data(key), and make it a key again with random.wrap_key_data in the kernel"
            )


def specs_of(what: str, specs: Any, tree: Any) -> list[Any]:
    """One spec for each array in the tree; TypeError if there are more or fewer.

    Where the tree has None, the specs may have it too.
    """
    count = structure(tree).num_leaves
    if specs is no_block_spec or specs is None:
        return [no_block_spec] * count
    found = flatten(specs, lambda x: x is None or isinstance(x, BlockSpec))[0]
    places = flatten(tree, lambda x: x is None)[0]
    if len(found) == len(places):
        found = [spec for spec, x in zip(found, places, strict=True) if x is not None]
    if len(found) != count:
        raise TypeError(f"pallas_call: {what} has {len(found)} specs for {count} arrays; give one for each, or None")
    return found


def alias_pairs(aliases: Mapping[int, int] | None) -> tuple[tuple[int, int], ...]:
    """The pairs of an operand and the result that takes its place; TypeError for what is no mapping of ints."""
    if aliases is not None and not isinstance(aliases, Mapping):
        raise TypeError(
            f"pallas_call: input_output_aliases must be a mapping, got {aliases!r}; write {{operand: result}}, such as "
            "{0: 0}"
        )
    what = "pallas_call: a number in input_output_aliases"
    return tuple((static_int(what, i), static_int(what, o)) for i, o in (aliases or {}).items())


def check_aliases(
    aliases: Sequence[tuple[int, int]], operands: Sequence[ShapedArray], results: Sequence[ShapedArray]
) -> None:
    """IndexError for an operand or a result that there is not, ShapeError or TypeError for two of other types.

    ValueError for a result that would take the place of two operands.
    """
    taken: dict[int, int] = {}
    for i, o in aliases:
        _check_position("operand", i, len(operands))
        _check_position("result", o, len(results))
        _check_same_type(i, o, operands[i], results[o])
        if taken.setdefault(o, i) != i:
            raise ValueError(
                f"pallas_call: input_output_aliases gives result {o} the memory of operands {taken[o]} and {i}; name "
                "one of them"
            )


def _check_position(what: str, position: int, count: int) -> None:
    if not 0 <= position < count:
        raise IndexError(
            f"pallas_call: input_output_aliases names {what} {position}, but there are {count}; count from 0, "
            "prefetched scalars included"
        )


def _check_same_type(i: int, o: int, operand: ShapedArray, result: ShapedArray) -> None:
    if (operand.shape, operand.dtype) == (result.shape, result.dtype):
        return
    error = TypeError if operand.shape == result.shape else ShapeError
    types = [a.str_short(short_dtypes=False) for a in (operand, result)]
    raise error(
        f"pallas_call: input_output_aliases gives result {o}, {types[1]}, the memory of operand {i}, {types[0]}; give "
        "both the same shape and dtype"
    )
