"""The choice of a formulation for an equation, by its params and shapes, when it is lowered for a CPU.

A formulation is emitted as a function that XLA does not inline (`noinline.py`), which all equations of a kind share.
A rewrite is the same primitive applied to other operands, in whose place it is lowered again.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xlamini.core import Jaxpr, Primitive, ShapedArray, memoised
from xlamini.primitives.windows.cpu.noinline import traced_alone


class Formulation(NamedTuple):
    """`compute(*operands, **params)` gives what the primitive gives, if `fits(*avals, **params)`."""

    fits: Callable[..., bool]
    compute: Callable[..., Any]


def by_formulation(ctx: Any, formulations: Sequence[Formulation], operands: Sequence[Any]) -> Any:
    """The result by the first formulation that fits; None if none does, or for another platform than the CPU."""
    if ctx.platform != "cpu" or not all(a.size for a in (*ctx.avals_in, ctx.aval_out)):
        return None
    avals, params = [ShapedArray(a.shape, a.dtype) for a in ctx.avals_in], ctx.eqn.params
    chosen = next((f for f in formulations if f.fits(*avals, **params)), None)
    if chosen is None:
        return None
    primitive: Primitive = ctx.eqn.primitive
    jaxpr = _traced(chosen, tuple(avals), tuple(params.items()))
    return ctx.part(jaxpr, operands, primitive.name, noinline=True)[0]


class Rewrite(NamedTuple):
    """`compute(bind, *operands, **params)` is the primitive, applied by its `bind`, if `fits(*avals, **params)`."""

    fits: Callable[..., bool]
    compute: Callable[..., Any]


def by_rewrite(ctx: Any, rewrites: Sequence[Rewrite], operands: Sequence[Any]) -> Any:
    """The result by the first rewrite that fits; None if none does, or for another platform than the CPU."""
    if ctx.platform != "cpu" or not all(a.size for a in (*ctx.avals_in, ctx.aval_out)):
        return None
    params, bind = ctx.eqn.params, ctx.eqn.primitive.bind
    chosen = next((r for r in rewrites if r.fits(*ctx.avals_in, **params)), None)
    return None if chosen is None else ctx.inline(lambda *xs: chosen.compute(bind, *xs, **params), *operands)


@memoised("call: formulations of convolutions and pools", 512)
def _traced(formulation: Formulation, avals: Sequence[ShapedArray], params: Sequence[tuple[str, Any]]) -> Jaxpr:
    return traced_alone(functools.partial(formulation.compute, **dict(params)), avals)
