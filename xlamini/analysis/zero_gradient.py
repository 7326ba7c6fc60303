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

from xlamini.analysis.cotangents import Cotangents, cotangents
from xlamini.analysis.places import Place, place_of, span
from xlamini.analysis.unroll import Unrolled, unrolled_call
from xlamini.core import Equation, Var, is_differentiable
from xlamini.core.api_boundary import api_boundary
from xlamini.core.hooks import results_with_tangents
from xlamini.staging import LeafNames, flat_arguments

UNUSED = "no result depends on it"
CANCEL = "its contributions to the results cancel each other"
SHOWN = 8
"""How many cuts a report shows for one argument."""


class Cut(NamedTuple):
    """An equation at which a gradient ends, and why it does."""

    place: Place | None
    reason: str

    def __str__(self) -> str:
        return self.reason if self.place is None else f"{self.place}\n        {self.place.operation}: {self.reason}"

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
        run = unrolled_call(f, args, kwargs)
        cts = cotangents(run)
        inputs = run.jaxpr.invars[len(run.jaxpr.invars) - flat_arguments(args, kwargs).count :]
        return WhyZero([_of_argument(run, cts, name, var) for name, var in _asked(args, argnums, inputs)])

    return explain


def _of_argument(run: Unrolled, cts: Cotangents, name: str, var: Var) -> ArgumentGradient:
    ct = cts.of.get(var)
    zeros = var.aval.size if ct is None else int(np.sum(ct == 0))
    cuts = list(_cuts(run, cts, var)) if zeros == var.aval.size else []
    return ArgumentGradient(name, zeros, var.aval.size, cuts)
