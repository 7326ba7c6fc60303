"""A choice that is batched: all branches run on all examples, and each example selects.

What a branch sees of an example that did not choose it is held constant, so that a derivative that does not exist there
does not spoil the sum over the examples.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core.effects import more_than_observing
from xlamini.core.jaxpr import Jaxpr
from xlamini.core.primitive import Axis
from xlamini.core.tangents import is_differentiable
from xlamini.core.tracer import aval_of, literal
from xlamini.interpreters.batch import batch
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives.batch_ops import with_batch_first
from xlamini.primitives.comparison import eq
from xlamini.primitives.identity import stop_gradient_p
from xlamini.primitives.select import select_n
from xlamini.primitives.shape import broadcast_in_dim

_INT32 = np.dtype(np.int32)


def run_all(axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], branches: tuple[Jaxpr, ...]) -> Any:
    """The outputs, for each example those of the branch it chose, and their batch dimensions.

    The branch's number comes first among the operands.
    """
    _check_effects(branches)
    mapped = [d is not None or is_differentiable(aval_of(x)) for x, d in zip(operands, dims, strict=True)]
    index, *moved = with_batch_first(operands, dims, axis.size, mapped)
    inner = [0 if m else None for m in mapped]
    outs = [_of_branch(axis, i, index, moved, inner[1:], branch) for i, branch in enumerate(branches)]
    return [_selected(index, cases) for cases in zip(*outs, strict=True)], [0] * len(branches[0].outvars)


def _of_branch(
    axis: Axis, number: int, index: Any, operands: Sequence[Any], dims: Sequence[int | None], branch: Jaxpr
) -> list[Any]:
    """The outputs of one branch, batched at 0, for all examples."""
    found, _ = batch(branch, axis, tuple(dims), (True,) * len(branch.outvars))
    chose = eq(index, literal(number, _INT32))
    held = [_held(chose, x) if is_differentiable(aval_of(x)) else x for x in operands]
    return evaluate(found, held)


def _held(chose: Any, x: Any) -> Any:
    """An operand, constant for the derivative where the example did not choose the branch."""
    return select_n(_spread(chose, x), stop_gradient_p(x), x)


def _selected(index: Any, cases: Sequence[Any]) -> Any:
    return select_n(_spread(index, cases[0]), *cases)


def _spread(which: Any, x: Any) -> Any:
    """One number for each example as one for each element of `x`."""
    shape = aval_of(x).shape
    return which if len(shape) == 1 else broadcast_in_dim(which, shape, (0,))


def _check_effects(branches: Sequence[Jaxpr]) -> None:
    """NotImplementedError for effects that would happen for examples that did not choose their branch."""
    found = more_than_observing({effect for branch in branches for effect in branch.effects})
    if found:
        raise NotImplementedError(
            f"cond and switch under vmap over the choice run all branches, but a branch has an effect that would then "
            f"happen for every example: {', '.join(map(repr, found))}; map over the operands only, or loop over the "
            "examples with lax.map"
        )
