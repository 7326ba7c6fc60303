"""Conditionals whose index varies along axes of shard_map's mesh: devices diverge, for they choose different branches.

All results of such a conditional vary along these axes. Where it is transposed, the cotangent of a value that devices
share is a sum over devices. No branch may take that sum, since devices of other branches would not arrive at it: each
device returns its addend, and the sum follows the conditional.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import Jaxpr, ShapedArray, Values, aval_of, rewrite
from xlamini.core.program.named_axes import divergent_along
from xlamini.core.sharding.manual_axes import divergent
from xlamini.core.sharding.partial_sums import sums_of
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.transpose import transpose
from xlamini.primitives.collectives.varying import own_p, sum_of_addends
from xlamini.staging import Mask
from xlamini.transforms.control_flow.carries import with_outputs_of


def with_varying_results(branches: Sequence[Jaxpr], index: Any) -> tuple[Jaxpr, ...]:
    """The branches with results that vary as the index does, even if they depend on shared values only."""
    with divergent_along(aval_of(index).vma):
        return tuple(with_outputs_of(branch, tuple(map(divergent, branch.out_avals))) for branch in branches)


def transposed(branch: Jaxpr, *options: Any) -> tuple[Jaxpr, Mask]:
    """The transpose of a branch, which returns the device's addends."""
    backward, nonzero = transpose(branch, *options)
    return _with_own_results(backward), nonzero


def summed(addends: Values, avals: Sequence[ShapedArray], index: Any) -> list[Any]:
    """The cotangents of operands of these types, from the devices' addends."""
    return [sum_of_addends(x, _axes_in_common(aval, index)) for x, aval in zip(addends, avals, strict=True)]


@rewrite
def _with_own_results(backward: Jaxpr) -> Jaxpr:
    """The jaxpr with results under their true types: each device has its own addends."""
    missing = [tuple(sorted(divergent(a).vma - a.vma, key=str)) for a in backward.out_avals]
    if not any(missing):
        return backward

    def owned(*operands: Any) -> list[Any]:
        outs = evaluate(backward, operands)
        return [own_p.bind(x, axes=axes) if axes else x for x, axes in zip(outs, missing, strict=True)]

    return build(owned, backward.in_avals, backward.name)[0]


def _axes_in_common(aval: ShapedArray, index: Any) -> tuple[Any, ...]:
    """The axes along which devices share a value of this type, and may choose different branches."""
    return tuple(sorted(aval_of(index).vma - aval.vma - sums_of(aval).reduced, key=str))
