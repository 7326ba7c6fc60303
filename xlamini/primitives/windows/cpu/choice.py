"""The choice of a formulation for an equation, by its params and shapes, when it is lowered for a CPU.

A formulation is emitted as a function that XLA does not inline (`noinline.py`), which all equations of a kind share.
A rewrite is the same primitive applied to other operands, in whose place it is lowered again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

import numpy as np

from xlamini.core import Jaxpr, Primitive, Shape, ShapedArray, aval_of, literal, memoised
from xlamini.lowering.control_flow import case
from xlamini.primitives.comparison import eq
from xlamini.primitives.convert_element_type import convert
from xlamini.primitives.elementwise import add_any, mul
from xlamini.primitives.shape import sum_over, transpose, transpose_p
from xlamini.primitives.windows.cpu.noinline import traced_alone


class Formulation(NamedTuple):
    """`compute(*operands, **params)` gives what the primitive gives, if `fits(*avals, **params)`.

    `alone`: only in programs of one device. In a loop over images each device would get all images of the others.
    """

    fits: Callable[..., bool]
    compute: Callable[..., Any]
    alone: bool = False


class Rewrite(NamedTuple):
    """`compute(bind, *operands, **params)` is the primitive, applied by its `bind`, if `fits(*avals, **params)`."""

    fits: Callable[..., bool]
    compute: Callable[..., Any]


Form = TypeVar("Form", Formulation, Rewrite)


def by_formulation(ctx: Any, formulations: Sequence[Formulation], operands: Sequence[Any]) -> Any:
    """The result by the first formulation that fits; None if none does, or for another platform than the CPU."""
    chosen = _first_that_fits(ctx, [f for f in formulations if not (f.alone and ctx.module.spans_devices)])
    if chosen is None:
        return None
    primitive: Primitive = ctx.eqn.primitive
    avals = tuple(ShapedArray(a.shape, a.dtype) for a in ctx.avals_in)
    jaxpr, order = _traced(chosen, avals, tuple(ctx.eqn.params.items()))
    (out,) = ctx.part(jaxpr, operands, primitive.name, noinline=True)
    return out if order is None else ctx.inline(lambda x: transpose(x, order), out, avals=jaxpr.out_avals)


def by_rewrite(ctx: Any, rewrites: Sequence[Rewrite], operands: Sequence[Any]) -> Any:
    """The result by the first rewrite that fits; None if none does, or for another platform than the CPU."""
    chosen = _first_that_fits(ctx, rewrites)
    return None if chosen is None else _rewritten(ctx, chosen, operands)


def by_rewrite_if_finite(
    ctx: Any, rewrites: Sequence[Rewrite], operands: Sequence[Any], otherwise: Callable[[], Any]
) -> Any:
    """The result by the first rewrite that fits if all numbers are finite, and else `otherwise()`; both are lowered.

    None if no rewrite fits, or for another platform than the CPU.
    """
    chosen = _first_that_fits(ctx, rewrites)
    if chosen is None:
        return None
    branches = [lambda: [otherwise()], lambda: [_rewritten(ctx, chosen, operands)]]
    return case(ctx, ctx.inline(_all_finite, *operands), branches, [ctx.aval_out])[0]


# --- helpers


def _all_finite(*operands: Any) -> Any:
    """1 if no operand has an infinity or NaN, else 0. Sums compile in half of the time of a test of each number."""
    nothing = [sum_over(mul(x, literal(0, aval_of(x).dtype)), range(aval_of(x).ndim)) for x in operands]
    total = functools.reduce(add_any, nothing)
    return convert(eq(total, literal(0, aval_of(total).dtype)), np.int32)


def _rewritten(ctx: Any, rewrite: Rewrite, operands: Sequence[Any]) -> Any:
    params, bind = ctx.eqn.params, ctx.eqn.primitive.bind
    return ctx.inline(lambda *xs: rewrite.compute(bind, *xs, **params), *operands)


def _first_that_fits(ctx: Any, forms: Sequence[Form]) -> Form | None:
    """The first of the forms for the equation that is lowered; none for empty arrays, and only for the CPU."""
    if ctx.platform != "cpu" or not all(a.size for a in (*ctx.avals_in, ctx.aval_out)):
        return None
    return next((f for f in forms if f.fits(*ctx.avals_in, **ctx.eqn.params)), None)


@memoised("call: formulations of convolutions and pools", 512)
def _traced(
    formulation: Formulation, avals: Sequence[ShapedArray], params: Sequence[tuple[str, Any]]
) -> tuple[Jaxpr, Shape | None]:
    """The program, and the order of its result's dimensions; None if they are in order.

    A transposition at its end is left to the caller, where XLA fuses it with what follows or chooses a layout that
    makes it free. As the result of the function it would be one copy for the function and another for the caller.
    """
    jaxpr = traced_alone(functools.partial(formulation.compute, **dict(params)), avals)
    if not jaxpr.eqns:  # windows of one element
        return jaxpr, None
    last = jaxpr.eqns[-1]
    if last.primitive is not transpose_p or list(last.outvars) != jaxpr.outvars:
        return jaxpr, None
    return jaxpr.replace(eqns=jaxpr.eqns[:-1], outvars=last.invars), last.params["permutation"]
