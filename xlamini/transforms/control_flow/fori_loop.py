"""The public function `fori_loop`: a loop over a range of integers.

With bounds that are concrete while tracing it is a `scan`, which has a reverse-mode derivative; otherwise a `while`.
"""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np

from xlamini.core import (
    Avals,
    Jaxpr,
    ShapedArray,
    UnknownValue,
    Values,
    aval_of,
    disable_jit,
    hooks,
    issubdtype,
    rewrite,
    value_of,
)
from xlamini.core.pytree import structure
from xlamini.core.sizes.expression import SymbolicSize, max_size
from xlamini.core.tracing.body import BodyBuilder
from xlamini.core.tracing.tracer import build
from xlamini.core.wrapping import wraps
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives import add, in_dtype, lt
from xlamini.primitives.base.promotion import number
from xlamini.runtime import Array
from xlamini.staging import Cells, Trace, checked_avals, rebuilt, retry_with_refs, store, threaded, values_of
from xlamini.staging.trace.trace_cache import body_trace
from xlamini.staging.trace.tracing import trace
from xlamini.transforms.control_flow.carries import Carry, check_function
from xlamini.transforms.scan.primitive import scan_p
from xlamini.transforms.sharding.device_put import device_put
from xlamini.transforms.while_loop.primitive import while_p

T = TypeVar("T")


@overload
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Array, Array], T],
    init_val: complex,
    *,
    unroll: int | bool | None = None,
) -> T: ...
@overload
def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[Array, T], T], init_val: T, *, unroll: int | bool | None = None
) -> T: ...
@overload
def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[Any, Any], T], init_val: Any, *, unroll: int | bool | None = None
) -> T: ...
def fori_loop(
    lower: Any,
    upper: Any,
    body_fun: Callable[[Any, Any], Any],
    init_val: Any,
    *,
    unroll: int | bool | None = None,
) -> Any:
    """The value that `init_val` becomes by `val = body_fun(i, val)` for every i in `range(lower, upper)`.

    The bounds are integers of one dtype, and so is i; a Python int takes on the dtype of the other bound. Both may be
    floats: they are truncated if they are concrete while tracing. `init_val` is an array, a number, or a container of
    them; `body_fun` returns the same structure, shapes and dtypes (else TypeError). A Python number takes the dtype
    that `body_fun` returns for it.

    If both bounds are concrete while tracing, the loop is a `scan`: it has derivatives in reverse mode, and `unroll` is
    the number of iterations in one iteration of the compiled loop (True: all). Otherwise it is a `while_loop`, with
    derivatives in forward mode only; for reverse mode bound the trip count with `while_loop(..., max_steps=N)`.

    >>> fori_loop(0, 5, lambda i, total: total + i, 0)
    Array(10, dtype=int32, weak_type=True)
    """
    check_function("fori_loop", "body_fun", body_fun)
    _check_bounds(lower, upper)
    return retry_with_refs(_fori_loop, _threading, lower, upper, body_fun, init_val, unroll)


def _threading(cells: Cells, lower: Any, upper: Any, body_fun: Callable, init_val: Any, unroll: Any) -> Any:
    """The loop with the refs that its body writes as part of the carry."""

    @wraps(body_fun)
    def iteration(i: Any, state: Any) -> Any:
        values, val = state
        val, values = threaded(body_fun, cells)(values, i, val)
        return values, val

    values, last = _fori_loop(lower, upper, iteration, (values_of(cells), init_val), unroll)
    store(cells, values)
    return last


def _fori_loop(lower: Any, upper: Any, body_fun: Callable, init_val: Any, unroll: int | bool | None) -> Any:
    bounds = _concrete_bounds(lower, upper)
    lower, upper = _one_dtype(_as_number(lower), _as_number(upper))
    if bounds is not None and issubdtype(aval_of(lower).dtype, np.floating):
        lower, upper = bounds
    length = None if bounds is None else max_size(bounds[1] - bounds[0], 0)
    factor = _unroll_factor(unroll, length)
    if disable_jit.value and bounds is not None:
        return _in_python(*bounds, body_fun, init_val)
    carry = Carry("fori_loop", body_fun, init_val, "init_val", 1)
    in_tree = structure(((0, init_val), {}))
    start = aval_of(lower)

    def trace_for(avals: Avals) -> Trace:
        inputs = [start, *avals]
        anew = functools.partial(trace, body_fun, in_tree, inputs, reuse_equal=True, kind=BodyBuilder)
        return body_trace("fori_loop", body_fun, in_tree, inputs, anew)

    init, body, _ = carry.trace_body(trace_for)
    if length is None:
        return rebuilt(carry.tree, _bind_while(lower, upper, body, init))
    return rebuilt(carry.tree, _bind_scan(lower, body, init, length, factor))


def _bind_scan(lower: Any, body: Trace, init: Values, length: int, unroll: int) -> list[Any]:
    """The last carry of a loop with a static trip count."""
    captured = len(body.captured)
    _, *outs = scan_p.bind(
        *body.captured,
        lower,
        *init,
        jaxpr=_counting(body.jaxpr, captured, ()),
        length=length,
        reverse=False,
        unroll=unroll,
        num_consts=captured,
        num_carry=len(init) + 1,
    )
    return outs


def _bind_while(lower: Any, upper: Any, body: Trace, init: Values) -> list[Any]:
    """The last carry of a loop with traced bounds; the upper bound is part of the carry."""
    captured, bound = len(body.captured), aval_of(upper)
    counting = _counting(body.jaxpr, captured, (bound,))
    cond, _ = build(lambda i, end, *carry: [lt(i, end)], counting.in_avals[captured:], "cond_fun")
    _, _, *outs = while_p.bind(
        *body.captured,
        lower,
        upper,
        *init,
        body_jaxpr=counting,
        body_nconsts=captured,
        cond_jaxpr=cond,
        cond_nconsts=0,
    )
    return outs


@rewrite
def _counting(body: Jaxpr, captured: int, bound: tuple[ShapedArray, ...]) -> Jaxpr:
    """The body with the loop counter in its carry: captured, i, bound, carry -> i + 1, bound, carry."""
    index, count = body.in_avals[captured], len(bound)

    def iteration(*operands: Any) -> list[Any]:
        consts, (i, *rest) = operands[:captured], operands[captured:]
        after = add(i, number(1, index.dtype, index.weak_type))
        return [after, *rest[:count], *evaluate(body, [*consts, i, *rest[count:]])]

    return build(iteration, [*body.in_avals[: captured + 1], *bound, *body.in_avals[captured + 1 :]], body.name)[0]


def _check_bounds(lower: Any, upper: Any) -> None:
    """TypeError unless each bound is an integer scalar, or each a float."""
    names = ("lower", "upper")
    avals = checked_avals((_as_number(lower), _as_number(upper)), names, "fori_loop")
    if all(aval.shape == () and issubdtype(aval.dtype, np.floating) for aval in avals):
        return
    for name, aval in zip(names, avals, strict=True):
        if aval.shape or not issubdtype(aval.dtype, np.integer):
            shown = aval.str_short(short_dtypes=False)
            fix = "reduce it with jnp.max, or loop under vmap" if aval.shape else "convert it with int() or .astype"
            raise TypeError(f"fori_loop: {name} must be one integer, got {shown}; {fix}")


def _one_dtype(lower: Any, upper: Any) -> tuple[Any, Any]:
    """The bounds in one dtype; only a weakly typed bound (a Python int) is converted."""
    first, last = aval_of(lower), aval_of(upper)
    if first.dtype == last.dtype:
        return lower, upper
    if first.weak_type:
        return in_dtype(lower, last.dtype), upper
    if last.weak_type:
        return lower, in_dtype(upper, first.dtype)
    raise TypeError(
        f"fori_loop: lower and upper must be of one dtype, got {first.dtype.name} and {last.dtype.name}; "
        f"convert one with .astype('{first.dtype.name}')"
    )


def _concrete_bounds(lower: Any, upper: Any) -> tuple[int, int] | None:
    """Both bounds as sizes, or None if one of them is a tracer without a value."""
    try:
        return _size_of(lower), _size_of(upper)
    except UnknownValue:
        return None


def _size_of(bound: Any) -> Any:
    return bound if type(bound) is SymbolicSize else int(value_of(bound))


def _as_number(bound: Any) -> Any:
    return hooks.size_value(bound) if type(bound) is SymbolicSize else bound


def _unroll_factor(unroll: Any, length: int | None) -> int:
    """The number of iterations in one iteration of the compiled loop."""
    if length is None:
        if unroll:
            raise ValueError(
                f"fori_loop: unroll={unroll!r} needs bounds that are known while the loop is traced; pass Python ints "
                "as lower and upper, or leave unroll out"
            )
        return 1
    if unroll is None or isinstance(unroll, bool):
        return max_size(length, 1) if unroll else 1
    if not isinstance(unroll, int | np.integer):
        raise TypeError(f"fori_loop: unroll must be an int or a bool, got {unroll!r} of type {type(unroll).__name__}")
    if unroll < 1:
        raise ValueError(f"fori_loop: unroll must be at least 1, got {unroll}; 1 means not unrolled")
    return int(unroll)


def _in_python(lower: int, upper: int, body_fun: Callable[[Any, Any], Any], init_val: Any) -> Any:
    value = device_put(init_val)
    for i in range(lower, upper):
        value = body_fun(i, value)
    return value
