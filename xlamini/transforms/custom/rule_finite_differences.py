"""Custom rules beside finite differences, when they are traced under the flag `debug_custom_rules`.

They are compared at the concrete operands of the call where these may be read, else at random ones, for random tangents
and cotangents. A rule that differs on purpose, such as one that clips cotangents, fails: the flag is for debugging.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import (
    Jaxpr,
    ShapedArray,
    Tracer,
    UnknownValue,
    Values,
    active,
    aval_of,
    close_over,
    float0,
    is_differentiable,
    value_of,
)
from xlamini.staging import Mask, chosen, with_none
from xlamini.staging.run.eager import program_cache
from xlamini.transforms.custom.call_site import CallSite
from xlamini.transforms.custom.rule_contract import Contract, path_of
from xlamini.transforms.derivatives.finite_differences import (
    directional,
    pairing,
    random_like,
    random_tangent,
    step_of,
    tolerance_of,
)


def check_jvp_rule(contract: Contract, site: CallSite, jaxpr: Jaxpr, nonzero: Mask, nonzero_out: Mask) -> None:
    """ValueError unless a rule for forward mode, as a jaxpr, gives the tangents of the function."""
    sample = Sample(site)
    avals, count = zip(site.avals, nonzero, strict=True), len(nonzero_out)
    slopes = [sample.tangent(a) if nz else np.zeros(a.shape, float0) for a, nz in avals]
    moving = [t.dtype for t in slopes[sample.first :] if t.dtype != float0]
    flat = sample.evaluate(jaxpr, [*sample.operands, *chosen(slopes, nonzero)])
    numeric = directional(sample.function, sample.primals, slopes[sample.first :], step_of(moving))
    for i, (found, due) in enumerate(zip(with_none(nonzero_out, flat[count:]), numeric, strict=True)):
        _compare(contract, f"the tangent of output{path_of(site.types.out_tree, i)}", found, due, moving)


def check_vjp_rules(contract: Contract, site: CallSite, forward: Jaxpr, backward: Jaxpr, nonzero: Mask) -> None:
    """ValueError unless the cotangents of fwd and bwd, as jaxprs, pair with tangents as those of the function do.

    `backward` takes cotangents of all differentiable outputs. Each argument is checked by itself.
    """
    sample = Sample(site)
    cts = [sample.tangent(aval_of(np.asarray(y))) for y in sample.function(sample.primals)]
    residuals = sample.evaluate(forward, sample.operands)[len(cts) :]
    flat = sample.evaluate(backward, [*residuals, *(ct for ct in cts if ct.dtype != float0)])
    avals = [aval_of(np.asarray(x)) for x in sample.primals]
    for i, (aval, ct) in enumerate(zip(avals, with_none(nonzero, flat), strict=True)):
        if is_differentiable(aval):
            along = [sample.tangent(a) if i == j else np.zeros(a.shape, float0) for j, a in enumerate(avals)]
            slopes = directional(sample.function, sample.primals, along, step_of([aval.dtype]))
            where = f"along a random tangent of {site.types.names[i]!r}, the cotangent"
            found = None if ct is None else pairing([ct], [along[i]])
            _compare(contract, where, found, pairing(cts, slopes), [aval.dtype])


class Sample:
    """Numbers for the values of a call: its own where they can be read, else random ones, the same each time."""

    first: int

    def __init__(self, site: CallSite):
        assert site.debugged is not None
        self._rng = np.random.RandomState(0)
        self._numbers: dict[Any, Any] = {}
        self._jaxpr, self.first = site.debugged.jaxpr, len(site.closed)
        self._captured = list(map(self._number, site.debugged.captured))
        self.operands: list[Any] = self._operands(site)
        self.primals: list[Any] = self.operands[self.first :]

    def tangent(self, aval: ShapedArray) -> Any:
        return random_tangent(self._rng, aval)

    def function(self, primals: Values) -> list[Any]:
        """The flat outputs of the user's function, as arrays."""
        return self.evaluate(self._jaxpr, [*self._captured, *primals])

    def evaluate(self, jaxpr: Jaxpr, operands: Values) -> list[Any]:
        """The outputs of a jaxpr, as arrays, with numbers for the values that it captured."""
        with active(None):
            return program_cache.run(close_over(jaxpr), [*map(self._number, jaxpr.consts), *operands])

    def _operands(self, site: CallSite) -> list[Any]:
        values = site.concrete()
        if values is not None:
            return list(map(self._number, values))
        variables = [*site.rewritten, *[None] * len(site.types.in_avals)]
        known = map(self._numbers.get, variables)
        return [random_like(self._rng, a) if x is None else x for a, x in zip(site.avals, known, strict=True)]

    def _number(self, x: Any) -> Any:
        if type(x) is not Tracer:
            return x
        if x.variable not in self._numbers:
            self._numbers[x.variable] = self._value_of(x)
        return self._numbers[x.variable]

    def _value_of(self, x: Tracer) -> Any:
        try:
            return value_of(x)
        except UnknownValue:
            return random_like(self._rng, x.aval)


def _compare(contract: Contract, what: str, value: Any, numeric: Any, dtypes: Values) -> None:
    """ValueError unless a derivative, None for zeros, is near one by finite differences; float0 is near everything."""
    due = np.asarray(numeric)
    found = np.zeros(due.shape) if value is None else np.asarray(value)
    if float0 in (due.dtype, found.dtype):
        return
    wide = found.astype(due.dtype)
    errors = np.abs(wide - due) / (1 + np.abs(due))
    tolerance = tolerance_of(*dtypes, *([found.dtype] if found.dtype.kind in "fc" else []))
    if errors.size and not np.max(errors) <= tolerance:
        worst = np.unravel_index(np.argmax(np.where(np.isnan(errors), np.inf, errors)), errors.shape)
        at = f" at {tuple(map(int, worst))}" if worst else ""
        raise ValueError(
            f"{contract}: {what}{at} is {wide[worst]:.6g}, but finite differences of {contract.call.name} give "
            f"{due[worst]:.6g}; correct the rule, or turn the flag debug_custom_rules off if it is meant to differ"
        )
