"""Where the first NaN or infinity of a run began: among its values, or else among the cotangents of its gradient.

The trap of gradients is `where(x > 0, sqrt(x), 0)`: the value is right, since the mask discards what `sqrt` gave. But
the cotangent of what is discarded is 0, and 0 times the infinite derivative of `sqrt` is NaN. Such an equation has a
cotangent without NaN, and adds a NaN to that of its operand.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.analysis.cotangents import Cotangents, cotangents
from xlamini.analysis.places import EquationLocation, place_of, span
from xlamini.analysis.unroll import Unrolled, unrolled
from xlamini.core import Equation, Var, is_differentiable
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.transforms.derivatives.diff_args import DiffArgs


class BadValue(NamedTuple):
    """The first equation that made NaN or infinity of finite values: where, in which direction, why, and what to do."""

    place: EquationLocation
    direction: str
    index: tuple[int, ...]
    reason: str
    fix: str

    def __str__(self) -> str:
        at = f" at index {self.index}" if self.index else ""
        return f"{self.place}\n    {self.direction}: {self.place.primitive} {self.reason}{at}\n    {self.fix}"

    def as_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "place": self.place.as_dict(), "index": list(self.index)}


class WhyNan(NamedTuple):
    """The answer of `why_nan`; empty if all values and gradients are finite."""

    found: BadValue | None

    def __repr__(self) -> str:
        return "no NaN and no infinity in the values or the gradient" if self.found is None else str(self.found)

    def as_dict(self) -> dict[str, Any]:
        return {"found": None if self.found is None else self.found.as_dict()}


def why_nan(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., WhyNan]:
    """A function that says where the first NaN or infinity of `f` or of its gradient began, and how to mend it.

    The result takes the arguments of `f`. It looks at every value of the forward pass first, and then at the gradient
    of the sum of all results with respect to the arguments `argnums`. NaN and infinity that the arguments have, and
    what comes of these, do not count. Loops are unrolled, so the answer names the iteration.

    >>> jnp = xlamini.numpy
    >>> found = xlamini.debug.why_nan(lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0))(0.0).found
    >>> found.direction, found.place.primitive
    ('backward', 'sqrt')
    """

    @api_boundary
    def explain(*args: Any, **kwargs: Any) -> WhyNan:
        diff = DiffArgs(f, argnums, args, kwargs, "why_nan")
        traced = diff.trace(has_aux=False)
        run = unrolled(traced.jaxpr, diff.operands(traced))
        return WhyNan(next(_bad_values(run), None) or next(_bad_cotangents(run, cotangents(run)), None))

    return explain


def _bad_values(run: Unrolled) -> Iterator[BadValue]:
    for number, eqn in enumerate(run.jaxpr.eqns):
        operands = [run.value(a) for a in eqn.invars]
        if not all(map(_is_finite, operands)):
            continue
        for result in (run.values[v] for v in eqn.outvars):
            if not _is_finite(result):
                yield _bad_value(run, number, result, operands)


def _bad_value(run: Unrolled, number: int, result: Any, operands: Sequence[Any]) -> BadValue:
    index = _first_bad(result)
    reason = f"gives {np.asarray(result)[index]} for {_at(operands, index, np.shape(result))}"
    fix = "Keep its operands within its domain, or replace them before it: jnp.where(valid, x, safe_value)."
    return BadValue(place_of(run.jaxpr.eqns[number], run.loops[number]), "forward", index, reason, fix)


def _bad_cotangents(run: Unrolled, cts: Cotangents) -> Iterator[BadValue]:
    for number in reversed(range(len(run.jaxpr.eqns))):
        eqn = run.jaxpr.eqns[number]
        given = [cts.of[v] for v in eqn.outvars if v in cts.of]
        if not all(map(_is_finite, given)):
            continue
        for place in range(len(eqn.invars)):
            addend = cts.by_edge.get((number, place))
            if addend is not None and not _is_finite(addend):
                yield _bad_cotangent(run, number, place, addend, given)


def _bad_cotangent(run: Unrolled, number: int, place: int, addend: np.ndarray, given: Sequence[np.ndarray]) -> BadValue:
    eqn, index = run.jaxpr.eqns[number], _first_bad(addend)
    operand = np.asarray(run.value(eqn.invars[place]))
    reason = f"has no finite derivative for {operand[index]}; the gradient becomes {addend[index]}"
    masked = any(ct.shape == addend.shape and ct[index] == 0 for ct in given)
    fix = _masked_fix(run, eqn) if masked else _FIX
    return BadValue(place_of(eqn, run.loops[number]), "backward", index, reason, fix)


_FIX = "Keep its operand away from this value, or give it a rule of its own by custom_jvp."


def _masked_fix(run: Unrolled, eqn: Equation) -> str:
    """The edit for a value that a mask discards later."""
    mask = _mask_after(run, eqn)
    where = f" by {mask}" if mask is not None else ""
    return (
        f"Its result is discarded there{where}, but 0 times an infinite derivative is NaN. Replace the operand before "
        f"{eqn.primitive.name} as well: x = jnp.where(mask, x, 1.0)."
    )


def _mask_after(run: Unrolled, eqn: Equation) -> EquationLocation | None:
    """The first later equation that takes a mask and, directly or not, what the equation gave."""
    reached = set(eqn.outvars)
    for number, later in enumerate(run.jaxpr.eqns):
        if reached.isdisjoint(a for a in later.invars if type(a) is Var):
            continue
        if len(later.invars) > 1 and not is_differentiable(later.invars[0].aval):
            return place_of(later, run.loops[number])
        reached.update(later.outvars)
    return None


def _is_finite(x: Any) -> bool:
    x = np.asarray(x)
    return not np.issubdtype(x.dtype, np.inexact) or bool(np.isfinite(x).all())


def _first_bad(x: Any) -> tuple[int, ...]:
    x = np.asarray(x)
    return tuple(int(i) for i in np.argwhere(~np.isfinite(x))[0]) if x.ndim else ()


def _at(operands: Sequence[Any], index: tuple[int, ...], shape: tuple[int, ...]) -> str:
    """The operands' elements at the index, for an operation by elements; else their ranges."""
    alike = [np.asarray(x)[index] if np.shape(x) == shape else None for x in operands]
    shown = (span(x) if element is None else f"{element}" for x, element in zip(operands, alike, strict=True))
    return ", ".join(shown) or "no operands"
