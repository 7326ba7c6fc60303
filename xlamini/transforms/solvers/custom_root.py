"""custom_root: a root of a function, by any method, differentiated by the implicit function theorem.

Where f(a, x) = 0 defines x, the tangent of x solves (df/dx) t = -(df/da)(tangent of a). The method itself is not
differentiated.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple, NoReturn

from xlamini.core import Values
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives.elementwise.arithmetic import neg
from xlamini.staging import Trace
from xlamini.staging.call.call_rules import call_partial_eval
from xlamini.transforms.derivatives.jvp import linearize
from xlamini.transforms.solvers.solver import Consts, Solver
from xlamini.transforms.solvers.solver_trees import (
    Function,
    Vector,
    check_functions,
    conformed,
    described,
    trace_equation,
    trace_function,
    trace_solve,
)

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
    check_functions(WHAT, f=f, solve=solve, tangent_solve=tangent_solve)
    guess, function = trace_equation(described(WHAT, "f", f), f, WHAT, initial_guess, "initial_guess")
    solved = trace_solve(described(WHAT, "solve", solve), solve, f, guess, has_aux)
    return root_p.solution((function, solved, _tangent(f, tangent_solve, guess)), guess, has_aux)


def _tangent(f: Function, tangent_solve: Function, guess: Vector) -> Trace:
    """The solution of the linear system at x, for a right-hand side."""
    which = described(WHAT, "tangent_solve", tangent_solve)

    def solution(x: Any, y: Any) -> list[Any]:
        _, derivative = linearize(f, x)
        return conformed(which, tangent_solve(derivative, y), guess)

    return trace_function(which, solution, guess._replace(name="x"), guess._replace(name="y"))


class RootTuple(NamedTuple):
    """A field for each of the three functions."""

    f: Any
    solve: Any
    tangent_solve: Any


class Root(Solver):
    """The last operands are the initial guess; `tangent_solve` takes the root and a right-hand side."""

    name = "custom_root"
    jaxprs = RootTuple
    num_vectors: Mapping[str, int] = {"tangent_solve": 2}
    lacks: Mapping[str, str] = {}

    def right_hand_side(self, moved: Values, vector_tangents: Values) -> list[Any]:
        return list(moved)

    def solve_tangent(
        self, rhs: Values, x: Values, consts: Consts, operands: Values, params: Any
    ) -> list[Any]:
        """Only what depends on the right-hand side is differentiated, so `tangent_solve` is split at it."""
        known = [*consts["tangent_solve"], *x]
        unknown = (False,) * len(known) + (True,) * len(rhs)
        found = call_partial_eval(evaluate, params["tangent_solve"], unknown, [*known, *rhs], (True,) * len(rhs))
        return list(map(neg, found))

    def transpose(self, cts: Values, *operands: Any, **params: Any) -> NoReturn:
        raise NotImplementedError(f"{self.name} is not linear, so it has no transpose")


root_p: Final = Root()
