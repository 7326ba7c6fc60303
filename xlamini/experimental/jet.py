"""jet: Taylor-mode automatic differentiation, of all orders in one pass."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from math import factorial
from typing import Any

from xlamini import numpy as jnp
from xlamini.core import Jaxpr, ShapeError, aval_of, flatten_from_user, is_differentiable, unflatten
from xlamini.core.errors.api_boundary import edge_of_face as _edge_of_face
from xlamini.interpreters.jet import push_jet
from xlamini.numpy.arguments import as_operand
from xlamini.primitives import broadcast_in_dim, convert, mul
from xlamini.staging import ArgNames, Trace, check_callable, checked_avals, name_of, rebuilt, transformed
from xlamini.staging.trace.tracing import kind_of_trace, trace, visible

__all__ = ["jet"]


def jet(
    fun: Callable[..., Any], primals: Sequence[Any], series: Sequence[Sequence[Any]], factorial_scaled: bool = True
) -> tuple[Any, Any]:
    """The value of `fun` and its first n derivatives along a curve through `primals`.

    `series[i]` has the derivatives 1 to n of the argument i along the curve, arrays of the shape of `primals[i]`. The
    result is the pair of `fun(*primals)` and, for each of its leaves, a list of derivatives 1 to n. With
    `factorial_scaled=False` both series consist of Taylor coefficients, where derivative k is divided by k!. The k-th
    derivative of a function of one number is the k-th term for the series (1, 0, 0, ...).

    Every primitive that has a jvp rule has higher derivatives. The program of a loop grows by a factor of 2 with every
    order, others polynomially. A `custom_jvp` rule is differentiated in place of its function; the rules of
    `custom_vjp` are not used.

    ValueError unless there is a series for each argument, all of one length; TypeError for primals that are no arrays
    of floats; ShapeError for a term of another shape than its primal; MissingRule, with the primitive's name, where
    there is no jvp rule.

    >>> jet(xlamini.numpy.sin, (0.0,), ((1.0, 0.0, 0.0),))
    (Array(0., dtype=float32, weak_type=True), [Array(1., dtype=float32, weak_type=True), \
Array(0., dtype=float32, weak_type=True), Array(-1., dtype=float32, weak_type=True)])
    """
    check_callable("jet", fun)
    values, terms = _checked(primals, series)
    scales = [1.0 if factorial_scaled else float(factorial(k)) for k in range(1, len(terms[0]) + 1 if terms else 1)]
    _, in_tree = flatten_from_user((tuple(values), {}))
    names = ArgNames(fun, in_tree)
    avals = checked_avals(values, names, name_of(fun))
    traced = trace(fun, in_tree, avals, values, names, reuse_equal=True, kind=kind_of_trace())
    operands = [*traced.captured, *values, *(t for every in terms for t in every)]
    flat = transformed(_flat_jet, traced.jaxpr, (len(values), tuple(scales)), operands)
    return _split(traced, flat, len(scales))


def _split(traced: Trace, flat: Sequence[Any], order: int) -> tuple[Any, Any]:
    """The outputs, and the list of the derivatives of each."""
    count = len(traced.jaxpr.outvars)
    rest = visible(flat[count:])
    by_leaf = [rest[i * order : (i + 1) * order] for i in range(count)]
    return rebuilt(traced.out_tree, flat[:count]), unflatten(traced.out_tree, by_leaf)


def _flat_jet(jaxpr: Jaxpr, count: int, scales: tuple[float, ...], operands: Sequence[Any]) -> list[Any]:
    """The outputs and their scaled derivatives; `operands` are captured values, `count` primals, and their series."""
    order, first = len(scales), len(jaxpr.invars)
    every = [operands[first + i * order : first + (i + 1) * order] for i in range(count)]
    series = [[_scaled(t, c) for t, c in zip(terms, scales, strict=True)] for terms in every]
    outs, found = push_jet(jaxpr, operands[:first], [None] * (first - count) + series, order)
    dense = [_of_float(t, out) for terms, out in zip(found, outs, strict=True) for t in terms]
    return [*outs, *(_scaled(t, 1 / c) for t, c in zip(dense, scales * len(outs), strict=True))]


def _scaled(x: Any, factor: float) -> Any:
    return x if factor == 1 else mul(x, factor)


def _of_float(derivative: Any, out: Any) -> Any:
    """A derivative; for an integer output, zeros."""
    return jnp.zeros(aval_of(out).shape) if derivative is None else derivative


def _checked(primals: Any, series: Any) -> tuple[list[Any], list[list[Any]]]:
    """The primals as arrays, and for each of them the terms of its series, as arrays of its type."""
    if not isinstance(primals, tuple | list) or not isinstance(series, tuple | list):
        raise TypeError("jet: primals and series must be tuples, with one entry for each argument")
    if len(primals) != len(series):
        raise ValueError(f"jet: {len(primals)} primals need as many series, got {len(series)}")
    values = [as_operand(f"jet: primals[{i}]", x) for i, x in enumerate(primals)]
    for i, x in enumerate(values):
        if not is_differentiable(aval_of(x)):
            raise TypeError(f"jet: primals[{i}] is {aval_of(x).str_long()}, but must be of floats; use .astype(float)")
    terms = [_terms(i, value, given) for i, (value, given) in enumerate(zip(values, series, strict=True))]
    lengths = [*map(len, terms)]
    if len({*lengths}) > 1:
        raise ValueError(f"jet: all series must have one length, got {', '.join(map(str, lengths))}")
    return values, terms


def _terms(index: int, value: Any, given: Any) -> list[Any]:
    if not isinstance(given, tuple | list):
        raise TypeError(f"jet: series[{index}] must be a list of terms, got {type(given).__name__}")
    aval = aval_of(value)
    terms = [as_operand(f"jet: series[{index}][{k}]", term) for k, term in enumerate(given)]
    for k, term in enumerate(terms):
        found = aval_of(term).shape
        if found not in (aval.shape, ()):
            raise ShapeError(f"jet: series[{index}][{k}] has shape {found}, but its primal {aval.shape}")
    typed = [convert(term, aval.dtype, aval.weak_type) for term in terms]
    return [x if aval_of(x).shape == aval.shape else broadcast_in_dim(x, aval.shape, ()) for x in typed]


_edge_of_face(globals())
