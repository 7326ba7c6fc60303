"""What the primitives of custom_root and custom_linear_solve share: several jaxprs, of which one runs.

Each jaxpr has leading inputs of its own, the values it captured. The equation's operands are these, jaxpr by jaxpr, as
many of each as `const_lengths` says, and then the vector (the right-hand side, the first guess) that all of them take.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.jaxpr import Effects, Jaxpr, close_over
from xlamini.core.primitive import Axis, Cost
from xlamini.core.pytree import unflatten
from xlamini.core.tangents import is_differentiable, is_zero
from xlamini.interpreters.batch import batch
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives.batch_ops import with_batch_first
from xlamini.primitives.tangent_ops import zeros
from xlamini.staging.call.call_rules import linearized
from xlamini.staging.call.higher_order import HigherOrder, chosen, cost_of, with_zeros
from xlamini.staging.trace.tracing import Trace, rebuilt
from xlamini.transforms.custom.vectors import Vector


class Solver(HigherOrder):
    """The jaxpr `solve` is what runs; the others say how it is differentiated. It may return more than the solution."""

    jaxprs: tuple[str, ...]
    """The params that are jaxprs (or None), in the order of `const_lengths`."""

    def shape_rule(self, *avals: ShapedArray, solve: Jaxpr, **params: Any) -> list[ShapedArray]:
        return solve.out_avals

    def batched(
        self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], vectors: dict[str, int], params: Any
    ) -> tuple[list[Any], list[int | None]]:
        """Each jaxpr batched, with its vectors (so many times the number of leaves) and its solution at dimension 0."""
        const_dims, vector_dims = self.parted(dims, params["const_lengths"])
        count, new, out_dims = len(vector_dims), dict(params), ()
        for name in self.jaxprs:
            jaxpr = params[name]
            if jaxpr is not None:
                force = (True,) * count + (False,) * (len(jaxpr.outvars) - count)
                in_dims = (*const_dims[name], *(0,) * (count * vectors.get(name, 1)))
                new[name], found = batch(jaxpr, axis, in_dims, force)
                out_dims = found if name == "solve" else out_dims
        start = len(operands) - count
        vector = with_batch_first(operands[start:], vector_dims, axis.size)
        return self.bind(*operands[:start], *vector, **new), list(out_dims)

    def lower(self, ctx: Any, *operands: Any, solve: Jaxpr, const_lengths: Sequence[int], **params: Any) -> Any:
        parts, vector = self.parted(operands, const_lengths)
        return ctx.body(solve, [*parts["solve"], *vector], self.name)

    def cost(self, *avals: ShapedArray, solve: Jaxpr, **params: Any) -> Cost:
        return cost_of(solve)

    def dce(self, used: Sequence[bool], params: dict[str, Any]) -> Any:
        """What is not used of the other results goes; the solution stays whole."""
        solve, lengths = params["solve"], params["const_lengths"]
        count = len(solve.invars) - lengths[self.jaxprs.index("solve")]
        kept = [True] * count + list(used[count:])
        slim, _ = dce(solve, tuple(kept), True)
        return [True] * (sum(lengths) + count), kept, {**params, "solve": slim}

    def effects(self, params: dict[str, Any]) -> Effects:
        return params["solve"].effects

    def with_captured(self, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        parts, vector = self.parted(operands, params["const_lengths"])
        new, every = dict(params), []
        for name in self.jaxprs:
            jaxpr = params[name]
            if jaxpr is not None:
                parts[name] = [*jaxpr.consts, *parts[name]]
                new[name] = close_over(jaxpr)
            every += parts[name]
        new["const_lengths"] = tuple(len(parts[name]) for name in self.jaxprs)
        return [*every, *vector], new

    def solved(self, parts: Sequence[Trace | None], vector: Vector, has_aux: bool) -> Any:
        """What the user gets: the solution, with `has_aux` a pair; `parts` are the traces of the functions."""
        named = dict(zip(self.jaxprs, parts, strict=True))
        outs = self.bind(
            *(x for part in parts if part is not None for x in part.captured),
            *vector.leaves,
            const_lengths=tuple(0 if part is None else len(part.captured) for part in parts),
            **{name: part and part.jaxpr for name, part in named.items()},
        )
        found = named["solve"]
        assert found is not None
        x, aux = rebuilt(found.out_tree, outs)
        x = unflatten(vector.tree, x)
        return (x, aux) if has_aux else x

    def parted(self, values: Sequence[Any], lengths: Sequence[int]) -> tuple[dict[str, list[Any]], list[Any]]:
        """What belongs to each jaxpr, and what to the vector."""
        found, start = {}, 0
        for name, length in zip(self.jaxprs, lengths, strict=True):
            found[name] = list(values[start : start + length])
            start += length
        return found, list(values[start:])


def moved_by(jaxpr: Jaxpr, primals: Sequence[Any], tangents: Sequence[Any]) -> list[Any]:
    """The tangents of a jaxpr's outputs, with the part that no tangent reaches apart from the linear one."""
    return linearized(evaluate, jaxpr, primals, tangents)[1]


def dense(tangents: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    """Tangents or cotangents as arrays of these types; of an integer it is a zero of its own type."""
    return [zeros(a) if is_zero(t) else t for t, a in zip(tangents, avals, strict=True)]


def solution_tangents(avals: Sequence[ShapedArray], found: Sequence[Any]) -> list[Any]:
    """A tangent for every result, of which the solution comes first, with the tangents that were found for it."""
    mask = [i < len(found) and is_differentiable(a) for i, a in enumerate(avals)]
    return with_zeros(avals, mask, chosen(found, mask[: len(found)]))
