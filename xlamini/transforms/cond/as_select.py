"""Batching of `cond` over the branch index: all branches run on all examples, and a select picks each example's result.

A branch treats the examples that did not choose it as constants (stop_gradient). Otherwise a NaN or infinite derivative
at such an example would be multiplied by zero and make the sum over the examples NaN.

A loop in a branch may never end for such an example. So a branch with a loop computes with the operands of one that
chose it in place of the others', and is not run if nobody did.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core import Axis, Dims, Jaxpr, Values, aval_of, is_differentiable, literal, memoised, subjaxprs
from xlamini.core.program.effects import more_than_observing
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.batch import batch
from xlamini.primitives import broadcast_in_dim, convert, eq, with_batch_first, zeros
from xlamini.primitives.elementwise.select import select_n
from xlamini.primitives.placement.identity import stop_gradient_p
from xlamini.primitives.reductions.reductions import reduce_or
from xlamini.transforms.cond.predicated_branch import run_branch
from xlamini.transforms.control_flow.predicated_lanes import replace_idle
from xlamini.transforms.while_loop.primitive import while_p

_INT32 = np.dtype(np.int32)


def run_all(axis: Axis, operands: Values, dims: Dims, branches: tuple[Jaxpr, ...], bind: Callable[..., Any]) -> Any:
    """The outputs of the branch that each example chose, and their batch dimensions; `operands[0]` is the index.

    `bind` applies the cond itself.
    """
    _check_effects(branches)
    mapped = [d is not None or is_differentiable(aval_of(x)) for x, d in zip(operands, dims, strict=True)]
    index, *moved = with_batch_first(operands, dims, axis.size, mapped)
    inner = [0 if m else None for m in mapped]
    outs = [_run_branch(axis, i, index, moved, inner[1:], branch, bind) for i, branch in enumerate(branches)]
    return [_select(index, cases) for cases in zip(*outs, strict=True)], [0] * len(branches[0].outvars)


def _run_branch(
    axis: Axis, number: int, index: Any, operands: Values, dims: Dims, branch: Jaxpr, bind: Callable[..., Any]
) -> list[Any]:
    """The outputs of one branch for all examples, with batch dimension 0."""
    batched, _ = batch(branch, axis, tuple(dims), (True,) * len(branch.outvars))
    chose = eq(index, literal(number, _INT32))
    inputs = [_stop_others(chose, x) if is_differentiable(aval_of(x)) else x for x in operands]
    lanes = [d is not None for d in dims]
    if not _has_loop(branch):
        return run_branch(chose, batched, inputs, lanes)
    inputs = [replace_idle(chose, x) if mapped else x for x, mapped in zip(inputs, lanes, strict=True)]
    return _run_if_chosen(bind, lambda chose, *xs: run_branch(chose, batched, xs, lanes), chose, inputs)


def _run_if_chosen(bind: Callable[..., Any], run: Callable[..., Any], chose: Any, operands: Values) -> list[Any]:
    """The outputs of `run(chose, *operands)`, or zeros if no example chose it."""
    ran, _ = build(run, list(map(aval_of, (chose, *operands))), "run")
    skipped, _ = build(lambda *xs: list(map(zeros, ran.out_avals)), ran.in_avals, "skip")
    return bind(convert(reduce_or(chose, (0,)), _INT32), chose, *operands, branches=(skipped, ran))


@memoised("helper: branches with loops", 1024)
def _has_loop(jaxpr: Jaxpr) -> bool:
    """Whether data decides how long a loop in the program runs."""
    return any(eqn.primitive is while_p or any(map(_has_loop, subjaxprs(eqn))) for eqn in jaxpr.eqns)


def _stop_others(chose: Any, x: Any) -> Any:
    """An operand with stop_gradient on the examples that did not choose the branch."""
    return select_n(_broadcast(chose, x), stop_gradient_p(x), x)


def _select(index: Any, cases: Values) -> Any:
    return select_n(_broadcast(index, cases[0]), *cases)


def _broadcast(which: Any, x: Any) -> Any:
    """A vector with one number per example, broadcast to the shape of `x`."""
    shape = aval_of(x).shape
    return which if len(shape) == 1 else broadcast_in_dim(which, shape, (0,))


def _check_effects(branches: Sequence[Jaxpr]) -> None:
    """NotImplementedError for effects that would also happen for examples that chose another branch."""
    effects = more_than_observing({effect for branch in branches for effect in branch.effects})
    if effects:
        raise NotImplementedError(
            f"cond and switch under vmap over the choice run all branches, but a branch has an effect that would then "
            f"happen for every example: {', '.join(map(repr, effects))}; map over the operands only, or loop over the "
            "examples with lax.map"
        )
