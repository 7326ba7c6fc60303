"""custom_linear_solve: a linear solve by any method, whose derivatives are linear solves too.

With A x = b: the tangent of x solves A t = (tangent of b) - (tangent of A) x, and the cotangent of b solves the
transposed system. The method itself is not differentiated.
"""
from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import Any, Final, NamedTuple

from xlamini.core import Jaxpr, MissingRule, Params, Values, flatten_from_user, is_linear, is_zero, unflatten
from xlamini.core.program.tangents import NonlinearError
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.transpose import transpose
from xlamini.primitives import sub
from xlamini.primitives.elementwise.arithmetic import neg
from xlamini.staging import Trace
from xlamini.transforms.derivatives.linearity import nonlinear_part
from xlamini.transforms.solvers.solver import Consts, Solver, dense
from xlamini.transforms.solvers.solver_trees import (
    Function,
    Vector,
    check_functions,
    checked_leaves,
    described,
    trace_equation,
    trace_solve,
)

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
    check_functions(WHAT, matvec=matvec, solve=solve)
    if transpose_solve is not None:
        check_functions(WHAT, transpose_solve=transpose_solve)
    elif symmetric:
        transpose_solve = solve
    which = described(WHAT, "matvec", matvec)
    vector, forward = trace_equation(which, matvec, WHAT, b, "b")
    backward = _vecmat(which, forward, symmetric, vector) if transpose_solve is not None else None
    solved, transposed = _traced("solve", solve, forward, vector, has_aux), None
    if transpose_solve is not None and backward is not None:
        transposed = _traced("transpose_solve", transpose_solve, backward, vector, has_aux)
        transposed = transposed._replace(jaxpr=_without_aux(transposed.jaxpr, len(vector.leaves)))
    return linear_solve_p.solution((forward, backward, solved, transposed), vector, has_aux)


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


def _traced(argument: str, solve: Function, linear_map: Trace, vector: Vector, has_aux: bool) -> Trace:
    """The trace of a user's solve, to which the linear map is a function."""
    which = described(WHAT, argument, solve)

    def apply(x: Any) -> Any:
        leaves, tree = flatten_from_user(x)
        problem = f"{which}: the argument of the linear map must be a pytree like b"
        leaves = checked_leaves(problem, "the argument", leaves, tree, vector)
        return unflatten(vector.tree, evaluate(linear_map.jaxpr, [*linear_map.captured, *leaves]))

    return trace_solve(which, solve, apply, vector, has_aux)


def _without_aux(solve: Jaxpr, count: int) -> Jaxpr:
    """A solve that returns the solution alone."""
    return dce(solve, tuple(i < count for i in range(len(solve.outvars))), True)[0]


class LinearSolveTuple(NamedTuple):
    """A field for each of the four functions."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any


_TRANSPOSED = {"matvec": "vecmat", "vecmat": "matvec", "solve": "transpose_solve", "transpose_solve": "solve"}


class LinearSolve(Solver):
    """Linear in b, the last operands. The solution comes first among the results, aux after it."""

    name = "custom_linear_solve"
    jaxprs = LinearSolveTuple
    lacks: Mapping[str, str] = {}

    def right_hand_side(self, moved: Values, vector_tangents: Values) -> list[Any]:
        return [_difference(b, ax) for b, ax in zip(vector_tangents, moved, strict=True)]

    def solve_tangent(
        self, rhs: Values, x: Values, consts: Consts, operands: Values, params: Any
    ) -> list[Any]:
        solve = _without_aux(params["solve"], len(x))
        return self.bind(*operands[: sum(params["const_lengths"])], *rhs, **{**params, "solve": solve})

    def transpose(self, cts: Values, *operands: Any, **params: Any) -> Values:
        """A solve of the transposed system: each function and its transpose are exchanged."""
        consts, b = self.split_vector(operands, params["const_lengths"])
        self._check_transposable(consts, params)
        b_avals = params["solve"].out_avals[: len(b)]
        swapped = {name: params[other] for name, other in _TRANSPOSED.items()}
        swapped["transpose_solve"] = _without_aux(params["solve"], len(b))
        parts, rhs = [consts[other] for other in _TRANSPOSED.values()], dense(cts[: len(b)], b_avals)
        outs = self.bind(*chain(*parts), *rhs, const_lengths=tuple(map(len, parts)), **swapped)
        b_cts = [ct if is_linear(x) else None for x, ct in zip(b, outs, strict=True)]
        return [None] * sum(params["const_lengths"]) + b_cts

    def _check_transposable(self, consts: Consts, params: Params) -> None:
        if any(map(is_linear, chain(*consts.values()))):
            raise NotImplementedError(f"{self.name} is linear in b alone, not in what matvec closes over")
        if params["transpose_solve"] is None:
            raise TypeError(
                f"{self.name}: reverse mode needs a solve of the transposed system; pass transpose_solve=, or "
                "symmetric=True if matvec is its own transpose"
            )


def _difference(x: Any, y: Any) -> Any:
    if is_zero(y):
        return x
    return neg(y) if is_zero(x) else sub(x, y)


linear_solve_p: Final = LinearSolve()
