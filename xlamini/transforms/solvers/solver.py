"""The base of the primitives of custom_root and custom_linear_solve: several jaxprs, of which one runs.

Each jaxpr has leading inputs of its own, the values it captured. The equation's operands are these, jaxpr by jaxpr, as
many of each as `const_lengths` says, and then the vector (the right-hand side, the initial guess) that all jaxprs take.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, islice
from typing import Any

from xlamini.core import (
    Avals,
    Axis,
    Dims,
    Effects,
    Jaxpr,
    Params,
    ShapedArray,
    Values,
    close_over,
    is_differentiable,
    is_zero,
    unflatten,
)
from xlamini.interpreters.batch import batch
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives import with_batch_first, zeros
from xlamini.staging import HigherOrder, Trace, chosen, rebuilt, with_zeros
from xlamini.staging.call.call_rules import call_linearize
from xlamini.transforms.solvers.solver_trees import Vector

Consts = dict[str, list[Any]]


class Solver(HigherOrder):
    """A call of the jaxpr `solve`, whose first results are the solution; the other jaxprs say how it is differentiated.

    A subclass says in `jaxprs` which params are jaxprs (or None), the equation to be solved first. Its derivative is
    given by `right_hand_side` and `solve_tangent`.
    """

    jaxprs: type[Any]
    """A NamedTuple with a field for each jaxpr, in the order of `const_lengths`."""
    num_vectors: Mapping[str, int] = {}
    """How many vectors a jaxpr takes, if not one."""

    def right_hand_side(self, moved: Values, vector_tangents: Values) -> list[Any]:
        """The right-hand side of the linear system for the tangent; `moved` is the equation's tangent at fixed x."""
        raise NotImplementedError

    def solve_tangent(
        self, rhs: Values, x: Values, consts: Consts, operands: Values, params: Any
    ) -> list[Any]:
        """The tangent of the solution `x`."""
        raise NotImplementedError

    def shape_rule(self, *avals: ShapedArray, solve: Jaxpr, **params: Any) -> list[ShapedArray]:
        return solve.out_avals

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        lengths, out_avals, outs = params["const_lengths"], params["solve"].out_avals, self.bind(*primals, **params)
        (consts, vector), (const_tangents, vector_tangents) = (
            self.split_vector(v, lengths) for v in (primals, tangents)
        )
        name, count = self.jaxprs._fields[0], len(vector)
        equation, x = params[name], outs[:count]
        # The tangent of x is the unknown of the linear system, so x itself is fixed here.
        fixed = with_zeros(equation.in_avals[lengths[0] :], (False,) * count, ())
        _, moved = call_linearize(evaluate, equation, [*consts[name], *x], [*const_tangents[name], *fixed])
        rhs = self.right_hand_side(moved, vector_tangents)
        if all(map(is_zero, rhs)):
            return outs, _solution_tangents(out_avals, ())
        found = self.solve_tangent(dense(rhs, out_avals[:count]), x, consts, primals, params)
        return outs, _solution_tangents(out_avals, found)

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        """Each jaxpr is batched, with the batch dimension of its vectors and its solution at 0."""
        const_dims, vector_dims = self.split_vector(dims, params["const_lengths"])
        count, new, out_dims = len(vector_dims), dict(params), ()
        for name, jaxpr in self._traced(params):
            force = (True,) * count + (False,) * (len(jaxpr.outvars) - count)
            in_dims = (*const_dims[name], *(0,) * (count * self.num_vectors.get(name, 1)))
            new[name], found = batch(jaxpr, axis, in_dims, force)
            out_dims = found if name == "solve" else out_dims
        start = len(operands) - count
        vector = with_batch_first(operands[start:], vector_dims, axis.size)
        return self.bind(*operands[:start], *vector, **new), list(out_dims)

    def lower(self, ctx: Any, *operands: Any, solve: Jaxpr, const_lengths: Sequence[int], **params: Any) -> Any:
        consts, vector = self.split_vector(operands, const_lengths)
        return ctx.body(solve, [*consts["solve"], *vector], self.name)

    def runs(self, params: Params) -> list[tuple[Jaxpr, int]]:
        return [(params["solve"], 1)]

    def dce(self, used: Sequence[bool], params: Params) -> Any:
        """Unused auxiliary outputs are removed; the solution stays whole."""
        solve, lengths = params["solve"], params["const_lengths"]
        count = len(solve.invars) - lengths[self.jaxprs._fields.index("solve")]
        kept = [True] * count + list(used[count:])
        slim, _ = dce(solve, tuple(kept), True)
        return [True] * (sum(lengths) + count), kept, {**params, "solve": slim}

    def checked(self, errors: frozenset[str], operands: Values, *, solve: Jaxpr, **params: Any) -> Any:
        from xlamini.staging.call.check import errors_beside, without_checks  # for those who check only

        consts, vector = self.split_vector(operands, params["const_lengths"])
        outs = self.bind(*operands, solve=without_checks(solve), **params)
        return outs, errors_beside(solve, errors, [*consts["solve"], *vector])

    def effects(self, avals: Avals, params: Params) -> Effects:
        return params["solve"].effects

    def with_captured(self, operands: Values, params: Params) -> Any:
        consts, vector = self.split_vector(operands, params["const_lengths"])
        new = dict(params)
        for name, jaxpr in self._traced(params):
            consts[name], new[name] = [*jaxpr.consts, *consts[name]], close_over(jaxpr)
        new["const_lengths"] = tuple(map(len, consts.values()))
        return [*chain(*consts.values()), *vector], new

    def shown_params(self, params: Params) -> Params:
        return {**super().shown_params(params), "const_lengths": self.jaxprs(*params["const_lengths"])}

    def solution(self, traces: Sequence[Trace | None], vector: Vector, has_aux: bool) -> Any:
        """What the user gets: the solution, with `has_aux` a pair; `traces` are those of the functions."""
        named = dict(zip(self.jaxprs._fields, traces, strict=True))
        captured = [[] if t is None else t.captured for t in traces]
        outs = self.bind(
            *chain(*captured),
            *vector.leaves,
            const_lengths=tuple(map(len, captured)),
            **{name: t and t.jaxpr for name, t in named.items()},
        )
        leaves, aux = rebuilt(named["solve"].out_tree, outs)  # type: ignore[union-attr]
        x = unflatten(vector.tree, leaves)
        return (x, aux) if has_aux else x

    def split_vector(self, values: Values, lengths: Sequence[int]) -> tuple[Consts, list[Any]]:
        """The values by jaxpr, and those of the vector."""
        rest = iter(values)
        consts = {name: list(islice(rest, n)) for name, n in zip(self.jaxprs._fields, lengths, strict=True)}
        return consts, list(rest)

    def _traced(self, params: Params) -> list[tuple[str, Jaxpr]]:
        return [(name, params[name]) for name in self.jaxprs._fields if params[name] is not None]


def dense(tangents: Values, avals: Avals) -> list[Any]:
    """Tangents or cotangents as arrays; that of an integer is a zero of the integer's own type."""
    return [zeros(a) if is_zero(t) else t for t, a in zip(tangents, avals, strict=True)]


def _solution_tangents(avals: Avals, found: Values) -> list[Any]:
    """A tangent for every output: `found` for the solution, symbolic zeros for the auxiliary outputs."""
    mask = [i < len(found) and is_differentiable(a) for i, a in enumerate(avals)]
    return with_zeros(avals, mask, chosen(found, mask[: len(found)]))
