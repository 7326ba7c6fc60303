"""Batch: a program on single examples becomes a program on a stack of them.

    batch(jaxpr, axis, dims)  ->  jaxpr on operands with a batch dimension at `dims`, and where its outputs have theirs

An equation that no batched value reaches stays as it is, unless it speaks of the axis by name.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.jaxpr import Jaxpr, Var
from xlamini.core.primitive import Axis
from xlamini.core.provenance import derived
from xlamini.core.rewriting import rewrite
from xlamini.core.tracer import build
from xlamini.interpreters.environment import bound, builder, noted, read, write
from xlamini.primitives.batch_ops import move_batch_dim

Dims = tuple[int | None, ...]


@rewrite
def batch(jaxpr: Jaxpr, axis: Axis, dims: Dims, force: tuple[bool, ...] = ()) -> tuple[Jaxpr, Dims]:
    """The batched jaxpr and the batch dimension of each output (None where it has none).

    Outputs marked in `force` get a batch dimension, at 0, even if they do not depend on the batch.
    """
    out_dims: list[int | None] = []

    def batched(*tracers: Any) -> list[Any]:
        outs, found = push_batch(jaxpr, axis, tracers, dims)
        for i, forced in enumerate(force):
            if forced:
                outs[i], found[i] = move_batch_dim(outs[i], axis.size, found[i], 0), 0
        out_dims.extend(found)
        return outs

    avals = [batched_aval(a, axis.size, d) for a, d in zip(jaxpr.in_avals, dims, strict=True)]
    result, _ = build(batched, avals, jaxpr.name)
    return result, tuple(out_dims)


def batched_aval(aval: ShapedArray, size: int, dim: int | None) -> ShapedArray:
    """The aval with a dimension of `size` inserted at `dim`."""
    if dim is None:
        return aval
    return aval.update(shape=(*aval.shape[:dim], size, *aval.shape[dim:]))


def push_batch(
    jaxpr: Jaxpr, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None]
) -> tuple[list[Any], list[int | None]]:
    """Outputs and their batch dimensions, by the `batch` rule of every equation that the batch reaches."""
    env, dim_env, target = bound(jaxpr, operands), noted(jaxpr, dims), builder()
    before, target.environment = target.environment, env
    for eqn in jaxpr.eqns:
        inputs = read(env, eqn.invars)
        in_dims = [dim_env.get(a) if type(a) is Var else None for a in eqn.invars]
        if in_dims.count(None) == len(in_dims) and axis.name not in eqn.primitive.named_axes(eqn.params):
            env.update(zip(eqn.outvars, target.replay(eqn, inputs), strict=True))
            continue
        target.provenance = derived("batch", eqn)
        outs, out_dims = eqn.primitive.batch(axis, inputs, in_dims, **eqn.params)
        write(env, eqn, outs)
        write(dim_env, eqn, out_dims)
    target.provenance, target.environment = None, before
    return read(env, jaxpr.outvars), [dim_env.get(a) if type(a) is Var else None for a in jaxpr.outvars]
