"""The error function, its complement and its inverse, elementwise."""
from __future__ import annotations

import math
from typing import Any

from xlamini.core import Avals, Params
from xlamini.core.program.form import Form, Platform
from xlamini.primitives.base.accuracy import Accuracy, Accurate
from xlamini.primitives.base.dtype_kinds import FLOAT
from xlamini.primitives.base.elementwise import Elementwise, elementwise
from xlamini.primitives.elementwise.arithmetic import finite
from xlamini.primitives.elementwise.exponential import TRANSCENDENTAL, exp
from xlamini.primitives.elementwise.power import square
from xlamini.primitives.forms.cpu.math import SINGLE, formula


class Gaussian(Elementwise):
    """One operation, so that on the CPU its formula is the one inside of `erfc`, which XLA then computes once."""

    def by_xla(self, ctx: Any, *operands: Any, **attributes: Any) -> Any:
        squared = ctx.op("stablehlo.multiply", *operands, *operands)
        return super().by_xla(ctx, ctx.op("stablehlo.negate", squared), **attributes)


@elementwise(
    family=Gaussian, hlo="stablehlo.exponential", on_cpu=formula("error_function.gaussian", SINGLE), accepts=FLOAT,
    flops=TRANSCENDENTAL,
)
def gaussian(x: Any) -> Any:
    """`exp(-x ** 2)`, elementwise: what the derivatives of error functions have in common."""


@gaussian.derivative
def _(x: Any, *, out: Any) -> Any:
    return -2 * out * finite(x)  # an infinite x would make NaN of 0


@elementwise(hlo="chlo.erf", accepts=FLOAT, flops=TRANSCENDENTAL)
def erf(x: Any) -> Any:
    """The error function, elementwise: the integral of `2 / sqrt(pi) * exp(-t ** 2)` from 0 to x.

    >>> lax.erf(0.0)
    Array(0., dtype=float32, weak_type=True)
    """


@erf.derivative
def _(x: Any, *, out: Any) -> Any:
    return 2 / math.sqrt(math.pi) * gaussian(x)


class Complement(Accurate):
    """It has one implementation, whose accuracy is that of HIGHEST; no operation of XLA takes a demand for less."""

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        return super().form(platform, avals, outs, {**params, "accuracy": None})

    def lower(self, ctx: Any, x: Any, *, accuracy: Accuracy = None) -> Any:
        return super().lower(ctx, x)


@elementwise(
    family=Complement, hlo="chlo.erfc", on_cpu=formula("error_function.complement", SINGLE), accepts=FLOAT,
    flops=TRANSCENDENTAL,
)
def erfc(x: Any, *, accuracy: Accuracy = None) -> Any:
    """The complement of the error function, elementwise: `1 - erf(x)`, precise also where x is large.

    >>> lax.erfc(0.0)
    Array(1., dtype=float32, weak_type=True)
    """


@erfc.derivative
def _(x: Any, *, out: Any) -> Any:
    return -2 / math.sqrt(math.pi) * gaussian(x)


@elementwise(hlo="chlo.erf_inv", accepts=FLOAT, flops=TRANSCENDENTAL)
def erf_inv(x: Any) -> Any:
    """The inverse of the error function, elementwise; NaN outside [-1, 1].

    >>> lax.erf_inv(0.0)
    Array(0., dtype=float32, weak_type=True)
    """


@erf_inv.derivative
def _(x: Any, *, out: Any) -> Any:
    return math.sqrt(math.pi) / 2 * exp(square(out))
