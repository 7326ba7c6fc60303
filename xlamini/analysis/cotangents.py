"""The cotangent of every variable of an unrolled run, and what each equation adds to that of each of its operands."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.analysis.unroll import Unrolled
from xlamini.core import Equation, ShapedArray, Var, aval_of, is_differentiable
from xlamini.transforms.derivatives.vjp import vjp

Edge = tuple[int, int]
"""The number of an equation, and the position of an operand."""


class Cotangents(NamedTuple):
    """Cotangents by variable, where there is one, and the addends to them by edge."""

    of: dict[Var, np.ndarray]
    by_edge: dict[Edge, np.ndarray]


def cotangents(run: Unrolled) -> Cotangents:
    """The cotangents for the sum of all results that have derivatives."""
    found = Cotangents({}, {})
    for atom in run.jaxpr.outvars:
        if type(atom) is Var and is_differentiable(atom.aval):
            _add(found.of, atom, np.ones(atom.aval.shape, atom.aval.dtype))
    for number in reversed(range(len(run.jaxpr.eqns))):
        _pull_back(run, number, found)
    return found


def _pull_back(run: Unrolled, number: int, found: Cotangents) -> None:
    eqn = run.jaxpr.eqns[number]
    if not any(v in found.of for v in eqn.outvars):
        return
    places = [i for i, a in enumerate(eqn.invars) if type(a) is Var and is_differentiable(a.aval)]
    for place, ct in zip(places, _addends(run, eqn, places, found), strict=True):
        found.by_edge[number, place] = ct
        _add(found.of, eqn.invars[place], ct)


def _addends(run: Unrolled, eqn: Equation, places: Sequence[int], found: Cotangents) -> list[np.ndarray]:
    """What the equation adds to the cotangents of the operands at these places."""
    values = [run.value(a) for a in eqn.invars]

    def results(*chosen: Any) -> list[Any]:
        given = dict(zip(places, chosen, strict=True))
        outs = eqn.primitive.bind(*[given.get(i, x) for i, x in enumerate(values)], **eqn.params)
        every = outs if eqn.primitive.multiple_results else [outs]
        return [x for x in every if is_differentiable(aval_of(x))]

    if not places:
        return []
    _, pull = vjp(results, *[values[i] for i in places])
    cts = [found.of.get(v, _zeros(v.aval)) for v in eqn.outvars if is_differentiable(v.aval)]
    return [np.asarray(ct) for ct in pull(cts)]


def _zeros(aval: ShapedArray) -> np.ndarray:
    return np.zeros(aval.shape, aval.dtype)


def _add(into: dict[Var, np.ndarray], var: Any, ct: np.ndarray) -> None:
    into[var] = into[var] + ct if var in into else ct
