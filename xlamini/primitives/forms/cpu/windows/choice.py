"""The choice of a form for a convolution or a pool on the CPU, by its params and shapes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Avals, Params, Primitive, aval_of, literal
from xlamini.core.program.form import Form, Platform
from xlamini.primitives.base.elementwise import add_any, mul
from xlamini.primitives.elementwise.comparison import eq
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.forms.parts import case, noinline_p, traced
from xlamini.primitives.shape.shape import sum_over, transpose, transpose_p


class Choice(NamedTuple):
    """`compute(*operands, **params)` gives what the primitive gives, if `fits(*avals, **params)`."""

    fits: Callable[..., bool]
    compute: Callable[..., Any]
    noinline: bool = False
    """Whether it is a function that XLA does not inline."""
    if_finite: bool = False
    """Whether it is right for finite numbers only; for others XLA's operation is computed."""
    on_one_device: bool = False
    """Whether it is for programs of one device: in a loop over images each device would get those of all others."""

    @property
    def uses_xla(self) -> bool:
        """Whether it applies XLA's operation, to other operands."""
        return not (self.noinline or self.if_finite)


def choose(
    choices: Sequence[Choice], platform: Platform, avals: Avals, outs: Avals, params: Params
) -> Choice | None:
    """The first choice that fits; None for empty arrays, and for another platform than the CPU."""
    if platform.name != "cpu" or not all(a.size for a in (*avals, *outs)):
        return None
    possible = (c for c in choices if not (c.on_one_device and platform.spans_devices))
    return next((c for c in possible if c.fits(*avals, **params)), None)


def form_by_choice(
    choices: Sequence[Choice], primitive: Primitive, platform: Platform, avals: Avals, outs: Avals, params: Params
) -> Form | None:
    """The form by the first choice that fits."""
    chosen = choose(choices, platform, avals, outs, params)
    return chosen and Form(_of(chosen, primitive, params))


# --- helpers


def _of(choice: Choice, primitive: Primitive, params: Params) -> Callable[..., Any]:
    compute = functools.partial(choice.compute, **params)
    if choice.noinline:
        return functools.partial(_noinline, compute)
    if choice.if_finite:
        return functools.partial(_if_finite, compute, functools.partial(primitive.bind, **params))
    return compute


def _noinline(compute: Callable[..., Any], *operands: Any) -> Any:
    """The result, by a function that XLA does not inline, but for a transposition at its end.

    XLA fuses that with what follows, or chooses a layout that makes it free. As the result of the function it would be
    one copy for the function and another for the caller.
    """
    jaxpr = traced(compute, list(map(aval_of, operands)))
    last = jaxpr.eqns[-1] if jaxpr.eqns else None  # windows of one element have no equations
    if last is None or last.primitive is not transpose_p or list(last.outvars) != jaxpr.outvars:
        return noinline_p.bind(*operands, jaxpr=jaxpr)
    before = jaxpr.replace(eqns=jaxpr.eqns[:-1], outvars=last.invars)
    return transpose(noinline_p.bind(*operands, jaxpr=before), last.params["permutation"])


def _if_finite(compute: Callable[..., Any], by_xla: Callable[..., Any], *operands: Any) -> Any:
    return case(_all_finite(*operands), (by_xla, compute), *operands)


def _all_finite(*operands: Any) -> Any:
    """1 if no operand has an infinity or NaN, else 0. Sums compile in half of the time of a test of each number."""
    nothing = [sum_over(mul(x, literal(0, aval_of(x).dtype)), range(aval_of(x).ndim)) for x in operands]
    total = functools.reduce(add_any, nothing)
    return convert(eq(total, literal(0, aval_of(total).dtype)), np.int32)
