"""custom_linear_solve: a linear solve by any method, whose derivatives are linear solves too.

With A x = b: the tangent of x solves A t = (tangent of b) - (tangent of A) x, and the cotangent of b solves the
transposed system. No derivative passes through the method.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from xlamini.core.errors import MissingRule
from xlamini.core.jaxpr import Jaxpr
from xlamini.core.primitive import Axis
from xlamini.core.pytree import flatten_from_user, unflatten
from xlamini.core.tangents import NonlinearError, is_linear, is_zero
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.transpose import transpose
from xlamini.primitives.arithmetic import neg, sub
from xlamini.staging.call.higher_order import with_zeros
from xlamini.staging.trace.arguments import check_callable
from xlamini.staging.trace.tracing import Trace
from xlamini.transforms.custom.solver import Solver, dense, moved_by, solution_tangents
from xlamini.transforms.custom.vectors import (
    Vector,
    alike,
    conformed,
    described,
    settled,
    traced,
    vector_of,
    with_aux,
)
from xlamini.transforms.derivatives.linearity import nonlinear_part

Function = Callable[..., Any]
WHAT = "custom_linear_solve"


def custom_linear_solve(
    matvec: Function,
    b: Any,
    solve: Function,
    transpose_solve: Function | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """The x with `matvec(x) == b`, found by `solve(matvec, b)`; its derivatives are linear solves by the same means.

    `b` is an array or a pytree of them, `matvec` a linear function from x to what is like b; it may close over arrays,
    by which the solution is then differentiated. `transpose_solve(vecmat, b)` solves the transposed system, for
    reverse mode; where the map is `symmetric`, `solve` does so by default. With `has_aux` both return `(x, aux)`, and
    so does this function; aux has no derivatives.

    Raises ShapeError or TypeError for a function whose result is not like `b`. Reverse mode without transpose_solve is
    a TypeError.

    >>> a, b = xlamini.numpy.array([2.0, 4.0]), xlamini.numpy.ones(2)
    >>> inverse = lambda a: custom_linear_solve(lambda x: a * x, b, lambda f, b: b / a, symmetric=True)
    >>> xlamini.grad(lambda a: inverse(a).sum())(a)
    Array([-0.25  , -0.0625], dtype=float32)
    """
    for name, fun in (("matvec", matvec), ("solve", solve), ("transpose_solve", transpose_solve)):
        if fun is not None:
            check_callable(f"{WHAT}: {name}", fun)
    if transpose_solve is None and symmetric:
        transpose_solve = solve
    which = described(WHAT, "matvec", matvec)
    vector = settled(which, matvec, vector_of(WHAT, b, "b"))
    forward = traced(which, lambda x: conformed(which, matvec(x), vector), vector)
    backward = _vecmat(which, forward, symmetric, vector) if transpose_solve is not None else None
    found = _solved("solve", solve, forward, vector, has_aux)
    transposed = None if backward is None else _solved("transpose_solve", transpose_solve, backward, vector, has_aux)
    parts = forward, backward, found, transposed and _solution_only(transposed, vector)
    return linear_solve_p.solved(parts, vector, has_aux)


def _vecmat(which: str, forward: Trace, symmetric: bool, vector: Vector) -> Trace:
    """The transpose of a traced linear function."""
    if symmetric:
        return forward
    every = (True,) * len(vector.leaves)
    linear = (False,) * len(forward.captured) + every
    try:
        backward, _ = transpose(forward.jaxpr, linear, every, every)
    except (MissingRule, NonlinearError) as error:
        problem = nonlinear_part(forward.jaxpr, linear) or str(error)
        raise type(error)(f"{which} is not linear, so there is no map for transpose_solve: {problem}") from None
    return forward._replace(jaxpr=backward)


def _solved(argument: str, solve: Any, map_: Trace, vector: Vector, has_aux: bool) -> Trace:
    """The trace of a user's solve, which gets the linear map as a function."""
    which = described(WHAT, argument, solve)

    def apply(x: Any) -> Any:
        leaves, tree = flatten_from_user(x)
        problem = f"{which}: the argument of the linear map must be a pytree like b"
        leaves = alike(problem, "the argument", leaves, tree, vector)
        return unflatten(vector.tree, evaluate(map_.jaxpr, [*map_.captured, *leaves]))

    def solution(b: Any) -> Any:
        x, aux = with_aux(which, solve(apply, b), has_aux)
        return conformed(which, x, vector), aux

    return traced(which, solution, vector, values=vector.leaves)


def _solution_only(found: Trace, vector: Vector) -> Trace:
    return found._replace(jaxpr=_without_aux(found.jaxpr, len(vector.leaves)))


def _without_aux(solve: Jaxpr, count: int) -> Jaxpr:
    """A solve that returns the solution alone."""
    mask = (True,) * count + (False,) * (len(solve.outvars) - count)
    return dce(solve, mask, True)[0]


class LinearSolveTuple(NamedTuple):
    """Something for each of the four functions."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any


class LinearSolve(Solver):
    """Linear in b, the last operands. The solution comes first among the results, aux after it."""

    name = "custom_linear_solve"
    jaxprs = LinearSolveTuple._fields
    lacks: Mapping[str, str] = {}

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        lengths, matvec, solve = params["const_lengths"], params["matvec"], params["solve"]
        outs = self.bind(*primals, **params)
        (consts, b), (const_tangents, b_tangents) = self.parted(primals, lengths), self.parted(tangents, lengths)
        x = outs[: len(b)]
        # Tangents of x are what is asked for, so x itself is held fixed here.
        fixed = with_zeros(matvec.in_avals[lengths[0] :], (False,) * len(x), ())
        moved = moved_by(matvec, [*consts["matvec"], *x], [*const_tangents["matvec"], *fixed])
        rhs = [_difference(t, m) for t, m in zip(b_tangents, moved, strict=True)]
        if all(map(is_zero, rhs)):
            return outs, solution_tangents(solve.out_avals, ())
        alone = {**params, "solve": _without_aux(solve, len(b))}
        found = self.bind(*primals[: sum(lengths)], *dense(rhs, solve.out_avals[: len(b)]), **alone)
        return outs, solution_tangents(solve.out_avals, found)

    def transpose(self, cts: Sequence[Any], *operands: Any, **params: Any) -> list[Any]:
        parts, b = self.parted(operands, params["const_lengths"])
        self._check_transposable(parts, params)
        swapped = {name: params[_OTHER[name]] for name in self.jaxprs}
        lengths = tuple(len(parts[_OTHER[name]]) for name in self.jaxprs)
        consts = [x for name in self.jaxprs for x in parts[_OTHER[name]]]
        given = dense(cts[: len(b)], params["solve"].out_avals[: len(b)])
        swapped["transpose_solve"] = _without_aux(swapped["transpose_solve"], len(b))
        outs = self.bind(*consts, *given, const_lengths=lengths, **swapped)
        return [None] * len(consts) + [ct if is_linear(x) else None for x, ct in zip(b, outs, strict=True)]

    def batch(self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        return self.batched(axis, operands, dims, {}, params)

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        return {**super().shown_params(params), "const_lengths": LinearSolveTuple(*params["const_lengths"])}

    def _check_transposable(self, parts: dict[str, list[Any]], params: dict[str, Any]) -> None:
        if any(is_linear(x) for part in parts.values() for x in part):
            raise NotImplementedError(f"{self.name} is linear in b alone, not in what matvec closes over")
        if params["transpose_solve"] is None:
            raise TypeError(
                f"{self.name}: reverse mode needs a solve of the transposed system; pass transpose_solve=, or "
                "symmetric=True if matvec is its own transpose"
            )


_OTHER = {"matvec": "vecmat", "vecmat": "matvec", "solve": "transpose_solve", "transpose_solve": "solve"}


def _difference(x: Any, y: Any) -> Any:
    if is_zero(y):
        return x
    return neg(y) if is_zero(x) else sub(x, y)


linear_solve_p = LinearSolve()
