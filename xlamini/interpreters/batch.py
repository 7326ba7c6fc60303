"""Batching (vmap): a program on single examples becomes a program on a batch.

    batch(jaxpr, axis, dims)  ->  jaxpr on operands with batch dimensions `dims`, and the output dims

An equation without batched operands is copied unchanged, unless it uses the axis by name.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import (
    Atom,
    Axis,
    Builder,
    Dims,
    Equation,
    Jaxpr,
    ShapedArray,
    Values,
    Var,
    aval_of,
    memoised,
    rewrite,
)
from xlamini.core.program.jaxpr import derived
from xlamini.core.sharding.manual_axes import named_axes
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.bindings import bound, builder, noted, read
from xlamini.interpreters.rule_cache import rewrite_once_per_kind
from xlamini.primitives import move_batch_dim


@rewrite
def batch(jaxpr: Jaxpr, axis: Axis, dims: Dims, force: tuple[bool, ...] = ()) -> tuple[Jaxpr, Dims]:
    """The batched jaxpr and the batch dimension of each output (None if it is not batched).

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

    avals = [batched_aval(a, axis, d) for a, d in zip(jaxpr.in_avals, dims, strict=True)]
    result, _ = build(batched, avals, jaxpr.name)
    return result, tuple(out_dims)


@memoised("kind: batched types", 4096)
def batched_aval(aval: ShapedArray, axis: Axis, dim: int | None) -> ShapedArray:
    """The aval with the batch axis inserted as dimension `dim`."""
    return aval if dim is None else aval.inserted(dim, axis.size, axis.placed).varying(aval.vma | axis.vma)


def push_batch(
    jaxpr: Jaxpr, axis: Axis, operands: Values, dims: Dims
) -> tuple[list[Any], list[int | None]]:
    """The outputs and their batch dimensions, by the `batch` rule of each equation with batched operands."""
    env, dim_env, target = bound(jaxpr, operands), noted(jaxpr, dims), builder()
    before, target.environment = target.environment, env
    for eqn in jaxpr.eqns:
        inputs = read(env, eqn.invars)
        in_dims = [dim_env.get(a) if type(a) is Var else None for a in eqn.invars]
        if in_dims.count(None) == len(in_dims) and axis.name not in named_axes(eqn.primitive, eqn.params):
            env.update(zip(eqn.outvars, target.replay(eqn, inputs), strict=True))
            continue
        outs, out_dims = _batch_equation(target, eqn, axis, inputs, in_dims)
        env.update(zip(eqn.outvars, outs, strict=True))
        dim_env.update(zip(eqn.outvars, out_dims, strict=True))
    target.environment = before
    return read(env, jaxpr.outvars), [dim_env.get(a) if type(a) is Var else None for a in jaxpr.outvars]


def _batch_equation(
    target: Builder, eqn: Equation, axis: Axis, inputs: Values, dims: Dims
) -> tuple[Sequence[Any], Sequence[int | None]]:
    notes = [_note(a, x, axis, d) for a, x, d in zip(eqn.invars, inputs, dims, strict=True)]
    once = rewrite_once_per_kind(batch, eqn, notes, axis)
    provenance = derived("batch", eqn)
    if once is not None:
        program, out_dims = once
        provenance.lanes = axis.size, dims, out_dims
        operands = [x for a, x in zip(eqn.invars, inputs, strict=True) if type(a) is Var]
        return target.inline(program, operands, provenance), out_dims
    target.provenance = provenance
    outs, out_dims = eqn.primitive.batch(axis, inputs, dims, **eqn.params)
    target.provenance = None
    outs, out_dims = (outs, out_dims) if eqn.primitive.multiple_results else ([outs], [out_dims])
    provenance.lanes = axis.size, dims, out_dims
    return outs, out_dims


def _note(atom: Atom, value: Any, axis: Axis, dim: int | None) -> Any:
    """The note on an operand (see rule_cache.py): its batch dimension, a literal, or an unexpected type."""
    if type(atom) is not Var:
        return atom
    found = aval_of(value)
    return dim if found is batched_aval(atom.aval, axis, dim) else found
