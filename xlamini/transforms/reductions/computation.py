"""The user-defined computation of a reduction: traced on scalars, and matched with a monoid or expanded.

An XLA reduction takes a computation without captured values, scalar initial values, and has no derivative. Where that
is a restriction, `folded` computes the reduction as a tree of elementwise operations.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Jaxpr,
    Literal,
    Primitive,
    ShapedArray,
    ShapeError,
    Tracer,
    Values,
    aval_of,
    first_difference,
    flatten_from_user,
    literal,
    unflatten,
)
from xlamini.core.errors import InconclusiveDimensionOperation
from xlamini.core.pytree import structure
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.batch import batch
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives import (
    BOOL,
    INTEGER,
    add,
    bitwise_and,
    bitwise_or,
    broadcast_in_dim,
    highest,
    index_in_dim,
    kind_of,
    lowest,
    max,
    min,
    mul,
    reshape,
    slice_in_dim,
)
from xlamini.primitives.base.elementwise import like_dtypes
from xlamini.primitives.elementwise.bitwise import bitwise_xor
from xlamini.primitives.shape.concatenate import concatenate
from xlamini.staging import LeafNames, Mask, avals_of, given, name_of, nonzero_of, with_zeros
from xlamini.staging.trace.tracing import trace
from xlamini.transforms.control_flow.carries import check_function


class Computation(NamedTuple):
    """A traced computation, its captured values, the flat operands, their initial values, and their tree."""

    jaxpr: Jaxpr
    captured: list[Any]
    operands: list[Any]
    starts: list[Any]
    tree: Any


def traced(what: str, operands: Any, init_values: Any, computation: Callable[[Any, Any], Any]) -> Computation:
    """Trace the computation; an error unless operands and initial values have one structure and matching types."""
    check_function(what, "computation", computation)
    leaves, tree = flatten_from_user(operands)
    starts, start_tree = flatten_from_user(init_values)
    if tree != start_tree:
        raise ValueError(
            f"{what}: operands and initial values must have one structure; "
            f"{first_difference(tree, start_tree, ('the operands', 'the initial values'))}"
        )
    names = LeafNames("operand", tree)
    avals = avals_of(leaves, names, what)
    starts = [_like(start, leaf) for start, leaf in zip(starts, leaves, strict=True)]
    start_avals = avals_of(starts, LeafNames("init_value", start_tree), what)
    _check_types(what, avals, start_avals, names)
    scalars = [ShapedArray((), a.dtype) for a in avals]
    pair = unflatten(tree, leaves)
    found = trace(computation, structure(((pair, pair), {})), [*scalars, *scalars], name=name_of(computation))
    if found.out_tree != tree:
        name = name_of(computation)
        raise ValueError(f"{what}: {name} must return the structure {tree}, but returned {found.out_tree}")
    _check_results(what, name_of(computation), found.jaxpr.out_avals, scalars)
    return Computation(found.jaxpr, found.captured, leaves, starts, tree)


class Monoid(NamedTuple):
    """The identity element of an operation, for a dtype, and the reduction by this operation."""

    start: Callable[[Any], Any]
    reduction: Primitive


def recognised(found: Computation, monoids: dict[Primitive, Monoid]) -> Primitive | None:
    """The reduction primitive of a computation that is one monoid operation with its identity as the initial value."""
    monoid = monoid_of(found, monoids)
    return monoid.reduction if monoid is not None and starts_with_identity(found, monoid) else None


def monoid_of(found: Computation, monoids: dict[Primitive, Monoid]) -> Monoid | None:
    """The monoid of a computation that is one monoid operation, with any initial value."""
    jaxpr = found.jaxpr
    if len(found.operands) != 1 or len(jaxpr.eqns) != 1 or found.captured:
        return None
    (eqn,) = jaxpr.eqns
    fits = eqn.outvars == jaxpr.outvars and set(eqn.invars) == set(jaxpr.invars)
    if not fits or (eqn.primitive in (add, mul) and kind_of(aval_of(found.operands[0]).dtype) is BOOL):
        return None
    return monoids.get(eqn.primitive)


def starts_with_identity(found: Computation, monoid: Monoid) -> bool:
    """Whether the initial value is a concrete scalar, and the monoid's identity."""
    dtype = aval_of(found.operands[0]).dtype
    return _is_identity(found.starts[0], monoid.start(dtype), dtype)


def monoids_of(**reductions: Primitive) -> dict[Primitive, Monoid]:
    """The monoids of these operations (such as `add=reduce_sum_p`), by the operation's primitive."""
    return {_OPERATIONS[name][0]: Monoid(_OPERATIONS[name][1], reduction) for name, reduction in reductions.items()}


def folded(jaxpr: Jaxpr, captured: Values, rows: Sequence[Any], starts: Values) -> list[Any]:
    """Reduce dimension 0 of the rows by pairs, in logarithmic depth, with scalar initial values."""
    first = [
        broadcast_in_dim(start, (1, *aval_of(x).shape[1:]), ()) for start, x in zip(starts, rows, strict=True)
    ]
    rows = [concatenate(pair, 0) for pair in zip(first, rows, strict=True)]
    n = aval_of(rows[0]).shape[0]
    if type(n) is SymbolicSize:
        raise InconclusiveDimensionOperation(
            f"a reduction of {n} elements by a function of the user, in pairs, is a program that depends on their "
            "number; write it as a lax.scan, or export for a number"
        )
    while n > 1:
        half = n // 2
        pairs = [slice_in_dim(x, s, 2 * half, 2) for s in (0, 1) for x in rows]
        joined = _elementwise(jaxpr, captured, pairs)
        odd = [slice_in_dim(x, n - 1, n) for x in rows] if n % 2 else []
        rows = [concatenate(pair, 0) for pair in zip(joined, odd, strict=True)] if odd else joined
        n = half + n % 2
    return [index_in_dim(x, 0, keepdims=False) for x in rows]


def tangents_by(
    plain: Callable[..., list[Any]], jvp: Any, primals: Values, tangents: Values
) -> list[Any]:
    """The tangents of `plain(*primals)`, where `plain` is the reduction expanded to elementwise operations."""
    jaxpr, _ = build(plain, [aval_of(x) for x in primals])
    pushed, nonzero_out = jvp(jaxpr, nonzero_of(tangents))
    outs = evaluate(pushed, [*primals, *given(tangents)])
    return with_zeros(jaxpr.out_avals, nonzero_out, outs[len(jaxpr.outvars) :])


def batched_by(plain: Callable[..., list[Any]], axis: Axis, operands: Values, dims: Any) -> Any:
    """The batched outputs of `plain(*operands)`, and their batch dimensions."""
    avals = [a if d is None else a.without(d) for a, d in zip(map(aval_of, operands), dims, strict=True)]
    jaxpr, _ = build(plain, avals)
    batched, out_dims = batch(jaxpr, axis, tuple(dims))
    return evaluate(batched, operands), list(out_dims)


# --- helpers


_OPERATIONS: dict[str, tuple[Primitive, Callable[[Any], Any]]] = {
    "add": (add, lambda dtype: 0),
    "mul": (mul, lambda dtype: 1),
    "max": (max, lowest),
    "min": (min, highest),
    "bitwise_and": (bitwise_and, lambda dtype: True if kind_of(dtype) is BOOL else np.invert(np.zeros((), dtype))),
    "bitwise_or": (bitwise_or, lambda dtype: 0),
    "bitwise_xor": (bitwise_xor, lambda dtype: 0),
}


def _is_identity(start: Any, neutral: Any, dtype: Any) -> bool:
    value = start.val if type(start) is Literal else start
    if type(value) is Tracer:
        return False
    infinite = isinstance(value, float) and not np.isfinite(value) and np.dtype(dtype).kind in "iub"
    return False if infinite else bool(np.asarray(value) == np.asarray(neutral))


def _elementwise(jaxpr: Jaxpr, captured: Values, arrays: Values) -> list[Any]:
    """Apply a jaxpr of scalars elementwise to arrays of one shape."""
    aval = aval_of(arrays[0])
    flat = [reshape(x, (aval.size,)) for x in arrays]
    dims = (None,) * len(captured) + (0,) * len(flat)
    force: Mask = (True,) * len(jaxpr.outvars)
    batched, _ = batch(jaxpr, Axis(aval.size), dims, force)
    return [reshape(x, aval.shape) for x in evaluate(batched, [*captured, *flat])]


def _like(start: Any, leaf: Any) -> Any:
    """The initial value in the dtype of its operand; an infinity is the end of the range of integers and booleans."""
    dtype = aval_of(leaf).dtype
    if isinstance(start, float) and math.isinf(start) and kind_of(dtype) in BOOL | INTEGER:
        return literal(lowest(dtype) if start < 0 else highest(dtype), dtype)
    return like_dtypes((start, leaf))[0]


def _check_types(
    what: str, avals: Avals, starts: Avals, names: Sequence[str]
) -> None:
    for i, (aval, start) in enumerate(zip(avals, starts, strict=True)):
        if aval.shape != avals[0].shape:
            raise ShapeError(
                f"{what}: all operands must have one shape, but {names[0]} is {avals[0].str_short(False)} and "
                f"{names[i]} is {aval.str_short(False)}"
            )
        if start.shape or start.dtype != aval.dtype:
            raise TypeError(
                f"{what}: the initial value of {names[i]}, {aval.str_short(False)}, must be a scalar of its dtype, but "
                f"is {start.str_short(False)}; write jnp.{aval.dtype.name}(value)"
            )


def _check_results(what: str, name: str, outs: Avals, scalars: Avals) -> None:
    for out, scalar in zip(outs, scalars, strict=True):
        if out.shape or out.dtype != scalar.dtype:
            raise TypeError(
                f"{what}: {name} must return scalars of the operands' dtypes, but returned {out.str_short(False)} for "
                f"{scalar.str_short(False)}; return .astype('{scalar.dtype.name}') of it"
            )
