"""What a function costs, in the form that `pallas_call` tells a compiler: `estimate_cost`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core import Equation, Jaxpr, flatten_from_user
from xlamini.core.program.kernels import CostEstimate
from xlamini.primitives.elementwise.exponential import TRANSCENDENTAL
from xlamini.staging import ArgNames, avals_of, name_of
from xlamini.staging.call.higher_order import cost_of
from xlamini.staging.trace.tracing import trace


def estimate_cost(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> CostEstimate:
    """The operations of `fun(*args)`, those of them that are transcendental, and the bytes of arguments and results.

    The arguments are arrays or `ShapeDtypeStruct`s.

    >>> estimate_cost(jnp.sin, xlamini.ShapeDtypeStruct((8, 128), "float32")).transcendentals
    1024
    """
    leaves, in_tree = flatten_from_user((args, kwargs))
    jaxpr = trace(fun, in_tree, avals_of(leaves, ArgNames(fun, in_tree), name_of(fun))).jaxpr
    moved = sum(a.nbytes for a in (*jaxpr.in_avals, *jaxpr.out_avals))
    return CostEstimate(cost_of(jaxpr).flops, _transcendentals(jaxpr), moved)


def _transcendentals(jaxpr: Jaxpr) -> int:
    return sum(map(_of_equation, jaxpr.eqns))


def _of_equation(eqn: Equation) -> int:
    primitive = eqn.primitive
    runs: Any = getattr(primitive, "runs", None)
    if runs is not None:
        return sum(n * _transcendentals(jaxpr) for jaxpr, n in runs(eqn.params))
    is_costly = getattr(primitive, "flops", 0) >= TRANSCENDENTAL
    return sum(v.aval.size for v in eqn.outvars) if is_costly else 0
