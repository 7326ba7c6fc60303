"""The arguments of an exported function: the check of their types, and those of dtype float0, which have no data."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xlamini.core import (
    Avals,
    PyTreeDef,
    ShapedArray,
    ShapeError,
    Values,
    canonicalize_dtype,
    enable_x64,
    first_difference,
    float0,
)
from xlamini.interpreters.physical import is_extended
from xlamini.primitives import convert, in_space
from xlamini.staging.aot.mismatch import differences, shown
from xlamini.staging.trace.arguments import checked_avals
from xlamini.transforms.export.call_primitive import sized

if TYPE_CHECKING:
    from xlamini.transforms.export.artifact import Exported


def where_data(each: Sequence[Any], avals: Avals) -> tuple[Any, ...]:
    """What is for the values that are not of dtype float0."""
    return tuple(x for x, aval in zip(each, avals, strict=True) if aval.dtype != float0)


def with_float0(values: Values, avals: Avals) -> list[Any]:
    """The values with the missing ones, of dtype float0, inserted."""
    given = iter(values)
    return [np.zeros(aval.shape, float0) if aval.dtype == float0 else next(given) for aval in avals]


def check_arguments(exported: Exported, leaves: Values, tree: PyTreeDef) -> None:
    """ShapeError or ValueError for arguments of other types than those it was exported for."""
    name = exported.fun_name
    if tree != exported.in_tree:
        raise ValueError(
            f"exported {name} was called with (args, kwargs) of another structure: "
            f"{first_difference(exported.in_tree, tree, ('exported', 'given'))}"
        )
    wrong = differences(leaves, exported._names, _wanted(exported, leaves), name)
    if in_shape := [d for d in wrong if d.in_shape]:
        of = shown(in_shape, "exported")
        raise ShapeError(f"exported {name} was called with other shapes: {of}; export it for these shapes")
    if wrong:
        of = shown(wrong, "exported")
        raise ValueError(f"exported {name} was called with other dtypes: {of}; {_remedy([d.wanted for d in wrong])}")


def _wanted(exported: Exported, leaves: Values) -> Avals:
    """The types that arguments must have, for their symbolic sizes if their ranks fit."""
    if not exported._symbolic:
        return exported.in_avals
    found = checked_avals(leaves, exported._names, exported.fun_name)
    if any(a.ndim != b.ndim for a, b in zip(found, exported.in_avals, strict=True)):
        return exported.in_avals
    sizes = exported._sizes(where_data(leaves, exported.in_avals))
    return [sized(aval, sizes) for aval in exported.in_avals]


def _remedy(expected: Avals) -> str:
    if any(map(is_extended, expected)):
        return "make such keys with random.key(seed, impl=...)"
    if not enable_x64.value and any(canonicalize_dtype(aval.dtype) != aval.dtype for aval in expected):
        return "it was exported with enable_x64, which is off here; set config.update('jax_enable_x64', True)"
    return "convert them with astype"


def typed_as(x: Any, aval: ShapedArray) -> Any:
    """An argument as a value of the exported type, which has its shape."""
    typed = x if aval.dtype == float0 or is_extended(aval) else convert(x, aval.dtype, aval.weak_type)
    return in_space(typed, aval.memory_space)
