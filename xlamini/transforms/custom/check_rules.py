"""Under the flag `debug_custom_rules` rules are compared with finite differences when they are first used.

At the numbers of the call where they are known, else at random ones; at random tangents and cotangents. A rule that is
meant to differ, one that clips cotangents for example, fails this test: it is for looking for mistakes.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core.avals import ShapedArray
from xlamini.core.concretization import Unknown, value_of
from xlamini.core.dtypes import float0
from xlamini.core.jaxpr import Jaxpr, close_over
from xlamini.core.tangents import is_differentiable
from xlamini.core.tracer import Tracer, active, aval_of
from xlamini.staging.run import program_cache
from xlamini.transforms.custom.rule_checks import RuleName, path_of
from xlamini.transforms.derivatives.finite_differences import (
    directional,
    pairing,
    random_like,
    random_tangent,
    step_of,
    tolerance_of,
)


class Numbers:
    """A number for everything: its own where it has one, else a random one of its type, the same each time."""

    def __init__(self) -> None:
        self._rng = np.random.RandomState(0)
        self._known: dict[Any, Any] = {}

    def of(self, x: Any) -> Any:
        if type(x) is not Tracer:
            return x
        if x.variable not in self._known:
            self._known[x.variable] = self._found(x)
        return self._known[x.variable]

    def like(self, aval: ShapedArray, variable: Any = None) -> Any:
        """A random number of a type, or what stands for this variable already."""
        found = self._known.get(variable)
        return random_like(self._rng, aval) if found is None else found

    def tangent(self, aval: ShapedArray) -> Any:
        return random_tangent(self._rng, aval)

    def _found(self, x: Tracer) -> Any:
        try:
            return value_of(x)
        except Unknown:
            return self.like(x.aval)


def evaluated(numbers: Numbers, jaxpr: Jaxpr, operands: Sequence[Any]) -> list[Any]:
    """The outputs of a jaxpr, as arrays, with numbers for what it captured."""
    with active(None):
        return program_cache.run(close_over(jaxpr), [*map(numbers.of, jaxpr.consts), *operands])


def check_tangents(
    rule: RuleName,
    fun: Callable[[list[Any]], Sequence[Any]],
    pushed: Callable[[list[Any], list[Any]], Sequence[Any]],
    primals: Sequence[Any],
    tangents: Sequence[Any],
    out_tree: Any,
) -> None:
    """ValueError unless `pushed(primals, tangents)`, flat, is what finite differences of `fun(primals)` give."""
    found = pushed(list(primals), list(tangents))
    moving = [t.dtype for t in tangents if t.dtype != float0]
    numeric = directional(fun, primals, tangents, step_of(moving))
    for i, (slope, wanted) in enumerate(zip(map(np.asarray, found), numeric, strict=True)):
        if wanted.dtype != float0 and slope.dtype != float0:
            _compare(rule, f"the tangent of output{path_of(out_tree, i)}", slope, wanted, moving)


def check_cotangents(
    rule: RuleName,
    fun: Callable[[list[Any]], Sequence[Any]],
    pull: Callable[[list[Any], list[Any]], Sequence[Any]],
    primals: Sequence[Any],
    names: Sequence[str],
    numbers: Numbers,
) -> None:
    """ValueError unless the cotangents of `pull(primals, cotangents of outputs)` pair with tangents as `fun` does.

    All flat; the cotangent of an argument may be None, for zeros. Each argument is checked by itself.
    """
    cts = [numbers.tangent(aval_of(np.asarray(y))) for y in fun(list(primals))]
    pulled = pull(list(primals), cts)
    avals = [aval_of(np.asarray(x)) for x in primals]
    for i, (aval, ct) in enumerate(zip(avals, pulled, strict=True)):
        if is_differentiable(aval):
            alone = [numbers.tangent(a) if i == j else np.zeros(a.shape, float0) for j, a in enumerate(avals)]
            slopes = directional(fun, primals, alone, step_of([aval.dtype]))
            found = 0.0 if ct is None else pairing([ct], [alone[i]])
            where = f"along a random tangent of {names[i]!r}, the cotangent"
            _compare(rule, where, np.asarray(found), np.asarray(pairing(cts, slopes)), [aval.dtype])


def _compare(rule: RuleName, what: str, found: np.ndarray, wanted: np.ndarray, dtypes: Sequence[Any]) -> None:
    tolerance = tolerance_of(*dtypes, *([found.dtype] if found.dtype.kind in "fc" else []))
    wide = found.astype(wanted.dtype)
    errors = np.abs(wide - wanted) / (1 + np.abs(wanted))
    if errors.size and not np.max(errors) <= tolerance:
        worst = np.unravel_index(np.argmax(np.where(np.isnan(errors), np.inf, errors)), errors.shape)
        at = f" at {tuple(map(int, worst))}" if worst else ""
        raise ValueError(
            f"{rule}: {what}{at} is {wide[worst]:.6g}, but finite differences of {rule.of} give {wanted[worst]:.6g}; "
            "correct the rule, or turn the flag debug_custom_rules off if it is meant to differ"
        )
