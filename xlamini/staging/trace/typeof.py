"""typeof: the aval of a value."""
from __future__ import annotations

from typing import Any

from xlamini.core import ShapedArray
from xlamini.core.program.hi_types import as_written
from xlamini.core.program.mutable_values import cell_of
from xlamini.core.program.ref_cells import is_holder
from xlamini.core.program.ref_types import AbstractRef
from xlamini.core.pytree import structure
from xlamini.staging.trace.arguments import avals_of


def typeof(x: Any) -> ShapedArray | AbstractRef:
    """The aval of an array, a tracer, a number or a `ShapeDtypeStruct`; it prints as `float32[3]`.

    That of a ref prints as `Ref{float32[3]}`.

    Raises TypeError for anything else; for the types of a container's leaves, use `tree.map`.

    >>> xlamini.typeof(xlamini.numpy.ones(3))
    ShapedArray(float32[3])
    """
    if structure(x).num_leaves != 1 or structure(x).num_nodes != 1:
        raise TypeError(f"typeof: {x!r} is a container; ask for its leaves' types: tree.map(typeof, x)")
    if is_holder(x):
        return cell_of(x).ty
    return as_written(avals_of([x], ["x"], "typeof")[0])
