"""odeint: the solution of an ordinary differential equation, with derivatives by the continuous adjoint method."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xlamini import numpy as jnp
from xlamini.core import ShapeError, aval_of, is_differentiable, tree_flatten, tree_leaves, tree_unflatten
from xlamini.core.errors.api_boundary import edge_of_face as _edge_of_face
from xlamini.core.pytree import first_difference, tree_structure
from xlamini.experimental.dormand_prince import StepLimits, integrate
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.tree_vector import ravel_pytree
from xlamini.runtime import Array
from xlamini.staging import chosen, inverse, merged, with_none
from xlamini.transforms.custom.closure_convert import closure_convert
from xlamini.transforms.custom.custom_vjp import custom_vjp
from xlamini.transforms.derivatives.vjp import vjp
from xlamini.transforms.scan.api import scan
from xlamini.transforms.vmap import vmap

__all__ = ["odeint"]


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Array,
    *args: Any,
    rtol: float = 1.4e-8,
    atol: float = 1.4e-8,
    mxstep: float = float("inf"),
    hmax: float = float("inf"),
) -> Any:
    """The solution of `dy/dt = func(y, t, *args)` with `y = y0` at `t[0]`, at each of the increasing times `t`.

    `y0` is a pytree of floats or complex numbers, whose structure and shapes `func` returns; the result has the leaves
    of `y0` with an additional first axis, as long as the vector `t`. The method is Dormand-Prince of order 5(4), whose
    step length follows from the local error allowed, `atol + rtol * abs(y)`. `mxstep` limits the number of steps
    between two times, and `hmax` their length; the result is NaN from the first time that `mxstep` steps do not reach,
    and where times decrease.

    Reverse mode integrates the adjoint equation backwards, with the same tolerances and the memory of one step. It
    gives the derivatives in `y0`, `t`, `args` and in the values that `func` closes over. Forward mode is a TypeError.

    TypeError where `t` or a leaf of `y0` is an integer, or an arg is no array; ShapeError where `t` is no vector, or
    `func` returns another structure or shape than that of `y0`.

    >>> ys = odeint(lambda y, t: -y, 1.0, xlamini.numpy.array([0.0, 1.0, 2.0]))
    >>> [f"{y:.4f}" for y in ys]
    ['1.0000', '0.3679', '0.1353']
    """
    y0_flat, unravel = _initial_value(y0)
    times = _times(t)
    leaves, tree = tree_flatten(args)
    leaves = [as_operand("odeint: args", leaf) for leaf in leaves]
    converted, closed_over = closure_convert(func, unravel(y0_flat), times[0], *tree_unflatten(tree, leaves))
    slope = functools.partial(_flat_slope, converted, unravel, tree)
    limits = StepLimits(float(rtol), float(atol), float(mxstep), float(hmax))
    return vmap(unravel)(_solution(slope, limits, y0_flat, times, *leaves, *closed_over))


def _initial_value(y0: Any) -> tuple[Any, Callable[[Any], Any]]:
    for leaf in tree_leaves(y0):
        dtype = as_operand("odeint: y0", leaf).dtype
        if not jnp.issubdtype(dtype, jnp.inexact):
            raise TypeError(f"odeint: y0 must consist of floats, got {dtype}; convert it with .astype(float)")
    flat, unravel = ravel_pytree(y0)
    return flat.astype(flat.dtype), unravel


def _times(t: Any) -> Any:
    times = as_operand("odeint: t", t)
    if times.ndim != 1 or not times.size:
        raise ShapeError(f"odeint: t must be a vector of one time or more, got shape {times.shape}")
    if not jnp.issubdtype(times.dtype, jnp.floating):
        raise TypeError(f"odeint: t must consist of floats, got {times.dtype}; convert it with .astype(float)")
    return times


def _flat_slope(converted: Any, unravel: Any, tree: Any, y: Any, t: Any, *operands: Any) -> Any:
    """The slope as a vector, for y as a vector; `operands` are the leaves of `args`, then the values closed over."""
    args = tree_unflatten(tree, operands[: tree.num_leaves])
    before = unravel(y)
    after = converted(before, t, *args, *operands[tree.num_leaves :])
    _check_slope(before, after)
    return ravel_pytree(after)[0]


def _check_slope(before: Any, after: Any) -> None:
    trees = tree_structure(before), tree_structure(after)
    if trees[0] != trees[1]:
        difference = first_difference(*trees, ("y0", "func's result"))
        raise ShapeError(f"odeint: func must return the structure of y0: {difference}")
    for y, slope in zip(tree_leaves(before), tree_leaves(after), strict=True):
        if y.shape != jnp.shape(slope):
            raise ShapeError(f"odeint: func must return the shapes of y0, got {jnp.shape(slope)} for {y.shape}")
        if jnp.iscomplexobj(slope) and not jnp.iscomplexobj(y):
            raise TypeError("odeint: func returns complex numbers where y0 is real; convert y0 with .astype(complex)")


@functools.partial(custom_vjp, nondiff_argnums=(0, 1))
def _solution(slope: Any, limits: StepLimits, y0: Any, times: Any, *operands: Any) -> Any:
    return integrate(lambda y, t: slope(y, t, *operands), y0, times, limits)


def _forward(slope: Any, limits: StepLimits, y0: Any, times: Any, *operands: Any) -> Any:
    ys = _solution(slope, limits, y0, times, *operands)
    return ys, (ys, times, operands)


def _backward(slope: Any, limits: StepLimits, residuals: Any, cotangent: Any) -> Any:
    """The cotangents of y0, times and operands: the adjoint system, from the last time to the first."""
    ys, times, operands = residuals
    marked = [is_differentiable(aval_of(x)) for x in operands]
    adjoint = functools.partial(_adjoint_slope, slope, marked)

    def interval(carry: Any, xs: Any) -> tuple[Any, Any]:
        y_bar, start_bar, bars = carry
        y, end, start, ct, earlier_ct = xs
        end_bar = jnp.vdot(jnp.conj(slope(y, end, *operands)), ct).real.astype(end.dtype)
        state = (y, y_bar, start_bar - end_bar, bars)
        _, y_bar, start_bar, bars = _last(adjoint, state, -end, -start, limits, operands)
        return (y_bar + earlier_ct, start_bar, bars), end_bar

    carry = cotangent[-1], jnp.zeros_like(times[0]), [jnp.zeros_like(x) for x in chosen(operands, marked)]
    xs = ys[1:], times[1:], times[:-1], cotangent[1:], cotangent[:-1]
    (y0_bar, first_bar, bars), later_bars = scan(interval, carry, xs, reverse=True)
    return y0_bar, jnp.concatenate([first_bar[None], later_bars]), *with_none(marked, bars)


def _last(slope: Any, state: Any, start: Any, end: Any, limits: StepLimits, operands: Sequence[Any]) -> Any:
    """The state at `end` of a system of pytrees that has the value `state` at `start`."""
    flat, unravel = ravel_pytree(state)
    flat_slope = functools.partial(_raveled, slope, unravel)
    return unravel(_solution(flat_slope, limits, flat, jnp.stack([start, end]), *operands)[1])


def _raveled(slope: Any, unravel: Any, flat: Any, t: Any, *operands: Any) -> Any:
    return ravel_pytree(slope(unravel(flat), t, *operands))[0]


def _adjoint_slope(slope: Any, marked: Sequence[bool], state: Any, negative_t: Any, *operands: Any) -> Any:
    """The slope of (y, its adjoint, the adjoints of time and of the float operands), in negative time."""
    y, y_bar, _, _ = state

    def of_floats(y: Any, t: Any, *floats: Any) -> Any:
        return slope(y, t, *merged(marked, floats, chosen(operands, inverse(marked))))

    dy, pull = vjp(of_floats, y, -negative_t, *chosen(operands, marked))
    dy_bar, dt_bar, *bars = pull(y_bar)
    return -dy, dy_bar, dt_bar, bars


_solution.defvjp(_forward, _backward)
_edge_of_face(globals())
