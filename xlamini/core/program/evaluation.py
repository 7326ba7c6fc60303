"""Evaluation of programs as values: `eval_jaxpr` and `jaxpr_as_fun`, for interpreters that users write."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import hooks
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.program.avals import Values, aval_of
from xlamini.core.program.jaxpr import Atom, ClosedJaxpr, Jaxpr, Var, close_over
from xlamini.core.program.ref_cells import Holder


@api_boundary
def eval_jaxpr(jaxpr: Jaxpr, consts: Values, *args: Any) -> list[Any]:
    """The outputs of a jaxpr, for the values of its constvars and inputs; in a traced function, as part of its program.

    TypeError unless there is one value for each variable.

    >>> closed = xlamini.make_jaxpr(lambda x, y: (x + y, x * y))(1.0, 2.0)
    >>> eval_jaxpr(closed.jaxpr, closed.consts, 3.0, 4.0)
    [Array(7., dtype=float32, weak_type=True), Array(12., dtype=float32, weak_type=True)]
    """
    jaxpr = jaxpr.jaxpr
    if (len(consts), len(args)) != (len(jaxpr.constvars), len(jaxpr.invars)):
        raise TypeError(
            f"eval_jaxpr: the jaxpr takes {len(jaxpr.constvars)} consts and {len(jaxpr.invars)} arguments, but got "
            f"{len(consts)} and {len(args)}; pass the flat leaves of what the function took"
        )
    taking = jaxpr.taking_consts()
    operands, program = [*taking.consts, *consts, *args], close_over(taking)
    if any(isinstance(x, Holder) for x in operands):
        return hooks.evaluate_on_refs(program, operands)
    if all(aval_of(x) == v.aval for x, v in zip(operands, program.invars, strict=True)):
        return hooks.evaluate_jaxpr(program, operands)
    return _bound_again(program, operands)


def _bound_again(jaxpr: Jaxpr, operands: Values) -> list[Any]:
    """The outputs for operands of other types, for which each equation gets types of its own."""
    env: dict[Any, Any] = dict(zip(jaxpr.invars, operands, strict=True))
    for eqn in jaxpr.eqns:
        outs = eqn.primitive.bind(*_read(env, eqn.invars), **eqn.params)
        env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs], strict=True))
    return _read(env, jaxpr.outvars)


def _read(env: dict[Any, Any], atoms: Sequence[Atom]) -> list[Any]:
    return [env[a] if type(a) is Var else a.val for a in atoms]


def jaxpr_as_fun(closed_jaxpr: ClosedJaxpr) -> Callable[..., list[Any]]:
    """The function of flat arguments that evaluates a closed jaxpr.

    >>> double = jaxpr_as_fun(xlamini.make_jaxpr(lambda x: 2 * x)(1.0))
    >>> xlamini.grad(lambda x: double(x)[0])(3.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return lambda *args: eval_jaxpr(closed_jaxpr.jaxpr, closed_jaxpr.consts, *args)
