"""minimize: the least value of a function of a vector, by BFGS or L-BFGS."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from xlamini import numpy as jnp
from xlamini.core import ShapeError
from xlamini.numpy.arguments import as_operand
from xlamini.runtime import Array
from xlamini.scipy.optimize.curvature import history, matrix
from xlamini.scipy.optimize.line_search import line_search
from xlamini.transforms.derivatives.value_and_grad import value_and_grad
from xlamini.transforms.while_loop.api import while_loop
from xlamini.typing import ArrayLike

_LIMITED_MEMORY = "l-bfgs-experimental-do-not-rely-on-this"
_OPTIONS = {
    "bfgs": ("maxiter", "norm", "gtol", "line_search_maxiter"),
    _LIMITED_MEMORY: ("maxiter", "norm", "maxcor", "ftol", "gtol", "maxfun", "maxgrad", "maxls"),
}


class OptimizeResults(NamedTuple):
    """The result of `minimize`: x, success and status, the value, gradient and inverse Hessian there, and counts.

    The status is 0 where the gradient is small, 1 after `maxiter` iterations, 2 after too many evaluations, 3 or 5
    where the line search finds no lower point (with one too far, or without), 4 where the value hardly changes; 0 and
    4 are successes. For a vector x of n numbers, `x` and `jac` have the shape (n,) and `hess_inv` (n, n); it is None of
    L-BFGS. All others are scalars.

    >>> found = minimize(lambda x: ((x - 3) ** 2).sum(), jnp.zeros(2), method="BFGS")
    >>> bool(found.success), int(found.status), found.x.round(), found.hess_inv.shape
    (True, 0, Array([3., 3.], dtype=float32), (2, 2))
    """

    x: Array
    success: Array | bool
    status: Array | int
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: Array | int
    njev: Array | int
    nit: Array | int


def minimize(
    fun: Callable[..., Any],
    x0: ArrayLike,
    args: tuple[Any, ...] = (),
    *,
    method: str,
    tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """A local minimum of `fun(x, *args)`, a real number, near the vector `x0`.

    `method` is "BFGS", or "l-bfgs-experimental-do-not-rely-on-this", which stores the last steps instead of a matrix.
    It ends when the norm of the gradient is below `tol`, by default 1e-5. Options of both are `maxiter`, `norm` (an
    order, as of `linalg.norm`) and `gtol`; of BFGS `line_search_maxiter`; of the other one `maxls`, `maxcor` (the
    number of steps stored), `ftol`, `maxfun` and `maxgrad`. Derivatives of the result are forward mode's only.

    ValueError for another method, TypeError for other options or where `args` is no tuple, ShapeError where `x0` is
    no vector or `fun` gives no single number.

    >>> minimize(lambda x: ((x - 3) ** 2).sum(), jnp.zeros(2), method="BFGS").x.round()
    Array([3., 3.], dtype=float32)
    """
    known = _known_options(method)
    given = {**({} if tol is None else {"gtol": tol}), **dict(options or {})}
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise TypeError(f"minimize: method {method!r} has the options {', '.join(known)}; got {', '.join(unknown)}")
    if not isinstance(args, tuple):
        raise TypeError(f"minimize: args must be a tuple, got {args!r} of type {type(args).__name__}; write (args,)")
    x = _vector(x0)
    evaluate = value_and_grad(_checked(fun, args, x.dtype))
    if method.lower() == "bfgs":
        return _by_bfgs(evaluate, x, **given)
    return _by_history(evaluate, x, **given)


def _by_bfgs(
    evaluate: Any, x: Any, maxiter: Any = None, norm: Any = jnp.inf, gtol: Any = 1e-5, line_search_maxiter: Any = 25
) -> OptimizeResults:
    limits = DescentLimits(x.size * 200 if maxiter is None else maxiter, gtol, norm, line_search_maxiter)
    found = descend(evaluate, x, matrix(x), limits)
    return _results(found, found.curvature.inverse)


def _by_history(
    evaluate: Any,
    x: Any,
    maxiter: Any = None,
    norm: Any = jnp.inf,
    maxcor: int = 10,
    ftol: Any = 2.220446049250313e-09,
    gtol: Any = 1e-5,
    maxfun: Any = None,
    maxgrad: Any = None,
    maxls: Any = 20,
) -> OptimizeResults:
    counts = [jnp.inf if most is None else most for most in (maxiter, maxfun, maxgrad)]
    limits = DescentLimits(counts[0], gtol, norm, maxls, ftol, jnp.minimum(counts[1], counts[2]))
    return _results(descend(evaluate, x, history(x, maxcor), limits), None)


def _results(s: DescentState, inverse: Any) -> OptimizeResults:
    counts = s.evaluations, s.evaluations, s.turns
    success = (s.status == CONVERGED) | (s.status == LEVEL)
    return OptimizeResults(s.x, success, s.status, s.value, s.gradient, inverse, *counts)


def _known_options(method: Any) -> tuple[str, ...]:
    known = _OPTIONS.get(method.lower()) if isinstance(method, str) else None
    if known is None:
        raise ValueError(f"minimize: method must be 'BFGS' or {_LIMITED_MEMORY!r}, got {method!r}")
    return known


def _vector(x0: Any) -> Any:
    x = as_operand("minimize", x0)
    if x.ndim != 1:
        raise ShapeError(f"minimize: x0 must be a vector, got shape {x.shape}; flatten it, and reshape x inside fun")
    if jnp.issubdtype(x.dtype, jnp.complexfloating):
        raise TypeError(f"minimize: x0 must be real, got {x.dtype}; join real and imaginary parts to one vector")
    return x if jnp.issubdtype(x.dtype, jnp.floating) else x.astype(float)


def _checked(fun: Any, args: tuple[Any, ...], dtype: Any) -> Callable[[Any], Any]:
    """The function of x alone, with a value of x's dtype."""
    if not callable(fun):
        raise TypeError(f"minimize takes a function, got {fun!r} of type {type(fun).__name__}")

    def function(x: Any) -> Any:
        value = as_operand("minimize", fun(x, *args))
        if value.shape:
            raise ShapeError(f"minimize: fun must return one number, got shape {value.shape}; return a sum of them")
        return value.astype(dtype)

    return function


GOING_ON, CONVERGED, LEVEL = -1, 0, 4


class DescentLimits(NamedTuple):
    """When to end, and the statuses that say so."""

    maxiter: Any
    gtol: Any
    norm: Any
    line_searches: Any
    ftol: Any = -1.0
    evaluations: Any = float("inf")


class DescentState(NamedTuple):
    """The state of the descent."""

    x: Any
    value: Any
    gradient: Any
    curvature: Any
    turns: Any
    evaluations: Any
    status: Any


def descend(evaluate: Callable[[Any], Any], x: Any, curvature: Any, limits: DescentLimits) -> DescentState:
    """Descend from x until the gradient is small, or a limit is met: see `status`."""
    value, gradient = evaluate(x)
    turns = jnp.array(0)
    status = jnp.where(_small(gradient, limits), CONVERGED, jnp.where(turns >= limits.maxiter, 1, GOING_ON))

    def turn(s: DescentState) -> DescentState:
        direction = s.curvature.direction(s.gradient)
        trial = jnp.where(s.turns == 0, jnp.minimum(1, 1 / jnp.linalg.norm(s.gradient)), 1)
        search = line_search(evaluate, s.x, direction, s.value, s.gradient, trial, limits.line_searches)
        low = search.low
        step = low.step * direction
        learned = s.curvature.learned(step, low.gradient - s.gradient)
        after = DescentState(
            s.x + step, low.value, low.gradient, learned, s.turns + 1, s.evaluations + search.count, s.status
        )
        stuck = jnp.where(low.step > 0, GOING_ON, jnp.where(search.bracketed, 3, 5))
        return after._replace(status=_status(s.value, after, stuck, limits))

    start = DescentState(x, value, gradient, curvature, turns, turns + 1, status)
    return while_loop(lambda s: s.status == GOING_ON, turn, start)


def _small(gradient: Any, limits: DescentLimits) -> Any:
    return jnp.linalg.norm(gradient, ord=limits.norm) < limits.gtol


def _status(before: Any, s: DescentState, stuck: Any, limits: DescentLimits) -> Any:
    """The status at the end: the first condition that holds."""
    size = jnp.maximum(jnp.maximum(abs(before), abs(s.value)), 1)
    status = jnp.where(before - s.value <= limits.ftol * size, LEVEL, GOING_ON)
    status = jnp.where(s.evaluations >= limits.evaluations, 2, status)
    status = jnp.where(s.turns >= limits.maxiter, 1, status)
    status = jnp.where(stuck != GOING_ON, stuck, status)
    return jnp.where(_small(s.gradient, limits), CONVERGED, status)
