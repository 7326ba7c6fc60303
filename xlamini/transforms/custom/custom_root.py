"""custom_root: a root of a function, by any method, differentiated by the implicit function theorem.

Where f(a, x) = 0 defines x, the tangent of x solves (df/dx) t = -(df/da)(tangent of a). No derivative passes through
the method.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn

from xlamini.core.jaxpr import Jaxpr
from xlamini.core.primitive import Axis
from xlamini.core.tangents import is_zero
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives.arithmetic import neg
from xlamini.staging.call.call_rules import in_halves
from xlamini.staging.call.higher_order import with_zeros
from xlamini.staging.trace.arguments import check_callable
from xlamini.staging.trace.tracing import Trace
from xlamini.transforms.custom.solver import Solver, dense, moved_by, solution_tangents
from xlamini.transforms.custom.vectors import (
    Vector,
    conformed,
    described,
    settled,
    traced,
    vector_of,
    with_aux,
)
from xlamini.transforms.derivatives.jvp import linearize

Function = Callable[..., Any]
WHAT = "custom_root"


def custom_root(
    f: Function, initial_guess: Any, solve: Function, tangent_solve: Function, has_aux: bool = False
) -> Any:
    """An x with `f(x) == 0`, found by `solve(f, initial_guess)`, differentiable by what `f` closes over.

    `initial_guess` is an array or a pytree of them; x and `f(x)` are like it. `tangent_solve(g, y)` solves the linear
    system `g(t) == y`, g being the derivative of f at the root; for reverse mode it must be linear in y, as by
    `y / g(1.0)` for scalars, or by `custom_linear_solve`. With `has_aux` solve returns `(x, aux)`, and so does this
    function; aux has no derivatives, nor has the initial guess.

    Raises ShapeError or TypeError for a function whose result is not like the guess.

    >>> root = lambda a: custom_root(lambda x: x * x - a, a, lambda f, x: a ** 0.5, lambda g, y: y / g(1.0))
    >>> root(4.0), xlamini.grad(root)(4.0)
    (Array(2., dtype=float32, weak_type=True), Array(0.25, dtype=float32, weak_type=True))
    """
    for name, fun in (("f", f), ("solve", solve), ("tangent_solve", tangent_solve)):
        check_callable(f"{WHAT}: {name}", fun)
    which = described(WHAT, "f", f)
    guess = settled(which, f, vector_of(WHAT, initial_guess, "initial_guess"))
    function = traced(which, lambda x: conformed(which, f(x), guess), guess)
    parts = function, _solved(f, solve, guess, has_aux), _tangent(f, tangent_solve, guess)
    return root_p.solved(parts, guess, has_aux)


def _solved(f: Function, solve: Function, guess: Vector, has_aux: bool) -> Trace:
    which = described(WHAT, "solve", solve)

    def solution(x: Any) -> Any:
        x, aux = with_aux(which, solve(f, x), has_aux)
        return conformed(which, x, guess), aux

    return traced(which, solution, guess, values=guess.leaves)


def _tangent(f: Function, tangent_solve: Function, guess: Vector) -> Trace:
    """The solution of the linear system at x, for a right-hand side."""
    which = described(WHAT, "tangent_solve", tangent_solve)

    def solution(x: Any, y: Any) -> list[Any]:
        _, derivative = linearize(f, x)
        return conformed(which, tangent_solve(derivative, y), guess)

    return traced(which, solution, guess._replace(name="x"), guess._replace(name="y"))


class RootTuple(NamedTuple):
    """Something for each of the three functions."""

    f: Any
    solve: Any
    tangent_solve: Any


class Root(Solver):
    """The last operands are the first guess; `tangent_solve` takes the root and a right-hand side."""

    name = "custom_root"
    jaxprs = RootTuple._fields
    lacks: Mapping[str, str] = {}

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        lengths, f, solve = params["const_lengths"], params["f"], params["solve"]
        outs = self.bind(*primals, **params)
        (consts, guess), (const_tangents, _) = self.parted(primals, lengths), self.parted(tangents, lengths)
        x, count = outs[: len(guess)], len(guess)
        fixed = with_zeros(f.in_avals[lengths[0] :], (False,) * count, ())
        moved = moved_by(f, [*consts["f"], *x], [*const_tangents["f"], *fixed])
        if all(map(is_zero, moved)):
            return outs, solution_tangents(solve.out_avals, ())
        rhs = dense(moved, solve.out_avals[:count])
        found = _linear_part(params["tangent_solve"], [*consts["tangent_solve"], *x], rhs)
        return outs, solution_tangents(solve.out_avals, list(map(neg, found)))

    def transpose(self, cts: Sequence[Any], *operands: Any, **params: Any) -> NoReturn:
        raise NotImplementedError(f"{self.name} is not linear, so it has no transpose")

    def batch(self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], **params: Any) -> Any:
        return self.batched(axis, operands, dims, {"tangent_solve": 2}, params)

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        return {**super().shown_params(params), "const_lengths": RootTuple(*params["const_lengths"])}


def _linear_part(jaxpr: Jaxpr, known: Sequence[Any], rhs: Sequence[Any]) -> list[Any]:
    """The outputs of a jaxpr of known values and a right-hand side, with what is known apart from what is not."""
    unknown = (False,) * len(known) + (True,) * len(rhs)
    return in_halves(evaluate, jaxpr, unknown, [*known, *rhs], (True,) * len(rhs))


root_p = Root()
