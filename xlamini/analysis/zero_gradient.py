"""Why a gradient is zero: the equations that cut it, found between what has a cotangent and what has none.

The run is unrolled, and each variable gets its cotangent. From an argument whose gradient is zero, the search goes
forward through equations whose results have cotangents of zero too, and stops at each that has a result with another:
there the gradient ends. Where a result has no derivatives (a boolean, an integer), or none of the results is used, it
ends as well.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.analysis.cotangents import Cotangents, Edge, cotangents
from xlamini.analysis.places import EquationLocation, place_of, span
from xlamini.analysis.unroll import Unrolled, unrolled
from xlamini.core import Equation, Jaxpr, Var, is_differentiable
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.interpreters.jvp import jvp
from xlamini.transforms.custom.custom_call import RuledCall
from xlamini.transforms.derivatives.diff_args import DiffArgs

UNUSED = "no result depends on it"
CANCEL = "its contributions to the results cancel each other"
SHOWN = 8
"""How many cuts a report shows for one argument."""


class Cut(NamedTuple):
    """An equation at which a gradient ends, and why it does."""

    place: EquationLocation | None
    reason: str

    def __str__(self) -> str:
        return self.reason if self.place is None else f"{self.place}\n        {self.place.primitive}: {self.reason}"

    def as_dict(self) -> dict[str, Any]:
        return {"place": None if self.place is None else self.place.as_dict(), "reason": self.reason}


class ArgumentGradient(NamedTuple):
    """What was found for one leaf of the arguments; without cuts if its gradient is not zero."""

    argument: str
    zeros: int
    size: int
    cuts: list[Cut]

    @property
    def is_zero(self) -> bool:
        return self.zeros == self.size

    def __str__(self) -> str:
        if not self.is_zero:
            return f"{self.argument}: not zero, except for {self.zeros} of {self.size} elements"
        lines = [f"    {cut}" for cut in self.cuts[:SHOWN]]
        more = [f"    and {len(self.cuts) - SHOWN} more"] if len(self.cuts) > SHOWN else []
        return "\n".join([f"{self.argument}: zero, because", *lines, *more])

    def as_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "is_zero": self.is_zero, "cuts": [cut.as_dict() for cut in self.cuts]}


class WhyZero(NamedTuple):
    """The answer of `why_zero`, for each leaf of the arguments that were asked about."""

    arguments: list[ArgumentGradient]

    @property
    def cuts(self) -> list[Cut]:
        return [cut for found in self.arguments for cut in found.cuts]

    def __repr__(self) -> str:
        return "\n".join(map(str, self.arguments))

    def as_dict(self) -> dict[str, Any]:
        return {"arguments": [found.as_dict() for found in self.arguments]}


def why_zero(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., WhyZero]:
    """A function that says for which arguments the gradient of `f` is zero, and which lines of the program cut it.

    The result takes the arguments of `f`. The gradient is that of the sum of all results that have derivatives;
    `argnums` says for which positional arguments. A cut is an operation without a derivative (a comparison, a
    conversion to integers, `argmax`), one whose derivative is zero everywhere (`round`, `stop_gradient`) or at these
    values (a saturated function, a branch of `where` that was not taken, a factor of 0), or an argument that no result
    depends on. Loops are unrolled, so a cut names its iteration.

    >>> def loss(w, x):
    ...     y = xlamini.numpy.round(w * x)
    ...     return y.sum()
    >>> found = xlamini.debug.why_zero(loss)(2.0, 3.0)
    >>> found.cuts[0].reason
    'its derivative is zero everywhere'
    """

    @api_boundary
    def explain(*args: Any, **kwargs: Any) -> WhyZero:
        diff = DiffArgs(f, argnums, args, kwargs, "why_zero")
        traced = diff.trace(has_aux=False)
        run = unrolled(traced.jaxpr, diff.operands(traced))
        cts = cotangents(run)
        inputs = run.jaxpr.invars[len(traced.captured) :]
        return WhyZero([_of_argument(run, cts, *named) for named in zip(diff.names, inputs, strict=True)])

    return explain


def _of_argument(run: Unrolled, cts: Cotangents, name: str, var: Var) -> ArgumentGradient:
    ct = cts.of.get(var)
    zeros = var.aval.size if ct is None else int(np.sum(ct == 0))
    cuts = list(_Search(run, cts).cuts_of(var)) if zeros == var.aval.size else []
    return ArgumentGradient(name, zeros, var.aval.size, cuts)


class _Search:
    """The search for the cuts between a variable without a cotangent and the results."""

    def __init__(self, run: Unrolled, cts: Cotangents):
        self.run, self.cts = run, cts
        self.readers: dict[Var, list[Edge]] = {}
        for number, eqn in enumerate(run.jaxpr.eqns):
            for place, atom in enumerate(eqn.invars):
                if type(atom) is Var:
                    self.readers.setdefault(atom, []).append((number, place))
        self.results = {a for a in run.jaxpr.outvars if type(a) is Var}
        self.used = _used(run.jaxpr)

    def cuts_of(self, var: Var) -> Iterator[Cut]:
        """The cuts after a variable, nearest first; each equation is visited once."""
        if not is_differentiable(var.aval):
            yield Cut(None, f"its dtype {var.aval.dtype.name} has no derivatives")
        elif var not in self.used:
            yield Cut(None, UNUSED)
        else:
            yield from self._cuts_after(var) or [Cut(None, CANCEL)]

    def _cuts_after(self, start: Var) -> list[Cut]:
        found: dict[Any, Cut] = {}
        waiting, seen = [start], {start}
        while waiting:
            for number, place in self.readers.get(waiting.pop(0), ()):
                eqn = self.run.jaxpr.eqns[number]
                reason = self._reason(number, place)
                if reason is None:
                    new = [v for v in eqn.outvars if v in self.used and v not in seen and not self._has(v)]
                    waiting.extend(new)
                    seen.update(new)
                elif not all(map(self._is_choice, eqn.outvars)):
                    found.setdefault((eqn.provenance.source, eqn.primitive, reason), self._cut(number, reason))
        return list(found.values())

    def _is_choice(self, var: Var) -> bool:
        """Whether a value without derivatives only chooses among values that have some, as a mask of `where` does."""
        if is_differentiable(var.aval) or var in self.results:
            return False
        eqns = [self.run.jaxpr.eqns[number] for number, _ in self.readers.get(var, ())]
        return all(_chooses(eqn) or all(map(self._is_choice, eqn.outvars)) for eqn in eqns)

    def _has(self, var: Var) -> bool:
        ct = self.cts.of.get(var)
        return ct is not None and bool(np.any(ct != 0))

    def _cut(self, number: int, reason: str) -> Cut:
        return Cut(place_of(self.run.jaxpr.eqns[number], self.run.loops[number]), reason)

    def _reason(self, number: int, place: int) -> str | None:
        """Why nothing of a result's cotangent reaches this operand; None if something does, or results have none."""
        eqn = self.run.jaxpr.eqns[number]
        results = [v for v in eqn.outvars if v in self.used]
        if results and not any(is_differentiable(v.aval) for v in results):
            return f"its result, {results[0].aval.str_short(short_dtypes=False)}, has no derivatives"
        contribution = self.cts.by_edge.get((number, place))
        if not any(map(self._has, results)) or (contribution is not None and np.any(contribution != 0)):
            return None
        return self._why_no_contribution(eqn, place)

    def _why_no_contribution(self, eqn: Equation, place: int) -> str:
        by_rule = isinstance(eqn.primitive, RuledCall)
        derivative = f"the derivative of {eqn.params['name']}" if by_rule else "its derivative"
        if not _has_tangent(eqn, place):
            return f"{derivative} is zero everywhere"
        others = [span(self.run.value(a)) for i, a in enumerate(eqn.invars) if i != place]
        beside = f", beside {'; '.join(others)}" if others else ""
        return f"{derivative} is zero at these values: {span(self.run.value(eqn.invars[place]))}{beside}"


def _used(jaxpr: Jaxpr) -> set[Var]:
    """The variables that results depend on."""
    used = {a for a in jaxpr.outvars if type(a) is Var}
    for eqn in reversed(jaxpr.eqns):
        if not used.isdisjoint(eqn.outvars):
            used.update(a for a in eqn.invars if type(a) is Var)
    return used


def _chooses(eqn: Equation) -> bool:
    return any(is_differentiable(a.aval) for a in eqn.invars) and any(is_differentiable(v.aval) for v in eqn.outvars)


def _has_tangent(eqn: Equation, place: int) -> bool:
    """Whether the rule gives any result a tangent where this operand alone has one."""
    alone = Jaxpr([], [a for a in eqn.invars if type(a) is Var], eqn.outvars, [eqn])
    nonzero = tuple(i == place for i, a in enumerate(eqn.invars) if type(a) is Var)
    return any(jvp(alone, nonzero)[1])
