"""optimization_barrier: values that XLA computes all, and before anything that uses them; nothing is fused across."""
from __future__ import annotations

import itertools
from typing import Any, Final

from xlamini.core import (
    Avals,
    Axis,
    Dims,
    Factors,
    Params,
    Primitive,
    ShapedArray,
    Values,
    apart,
    flatten,
    is_linear,
    is_zero,
    unflatten,
)
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.core.program.form import Form, Platform
from xlamini.core.sharding.facet import Sharding
from xlamini.core.sharding.partial_sums import Sums, sums_of


def optimization_barrier(operand: Any) -> Any:
    """An identity on the arrays of a pytree; XLA computes all of them before anything that uses one of them.

    >>> optimization_barrier((1.0, 2.0))
    (Array(1., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    leaves, tree = flatten(operand)
    return unflatten(tree, optimization_barrier_p.bind(*leaves))


def _factors(avals: Avals, outs: Avals, params: Params) -> Factors:
    return Factors(apart(avals), apart(outs))


def _sums(avals: Avals, outs: Avals, params: Params) -> list[Sums]:
    return list(map(sums_of, avals))


class OptimizationBarrier(Primitive):
    name = "optimization_barrier"
    multiple_results = True
    sharding: Sharding = Sharding(factors=_factors, sums=_sums, maps_each=True, chooses_memory=True)
    checks = NO_NEW_NAN

    def shape_rule(self, *avals: ShapedArray) -> list[ShapedArray]:
        return list(avals)

    def jvp(self, primals: Values, tangents: Values) -> Any:
        given = iter(self.bind(*[t for t in tangents if not is_zero(t)]))
        return self.bind(*primals), [t if is_zero(t) else next(given) for t in tangents]

    def transpose(self, cts: Values, *operands: Any) -> Values:
        # A zero stays one: as an array, it would be multiplied by derivatives that may be infinite.
        moved = [is_linear(x) and not is_zero(ct) for x, ct in zip(operands, cts, strict=True)]
        back = iter(self.bind(*itertools.compress(cts, moved)))
        return [next(back) if is_moved else None for is_moved in moved]

    def batch(self, axis: Axis, operands: Values, dims: Dims) -> Any:
        return self.bind(*operands), dims

    def lower(self, ctx: Any, *operands: Any) -> Any:
        outs = ctx.op("stablehlo.optimization_barrier", *operands)
        return [outs] if len(operands) == 1 else outs


optimization_barrier_p: Final = OptimizationBarrier()


class CpuBarrier(OptimizationBarrier):
    """A barrier on the CPU alone, whose compiler computes again, in full, what several loops read."""

    name = "cpu_barrier"

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        return None if platform.name == "cpu" else Form(lambda *operands: list(operands))


cpu_barrier_p: Final = CpuBarrier()
