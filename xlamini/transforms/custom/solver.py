"""What custom_root and custom_linear_solve share: primitives of several jaxprs, and the checks of users' functions.

Each jaxpr has leading inputs of its own, the values it captured. The equation's operands are these, jaxpr by jaxpr, as
many of each as `const_lengths` says, and then the vector (the right-hand side, the first guess) that all of them take.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xlamini.core.avals import ShapedArray
from xlamini.core.errors import ShapeError
from xlamini.core.jaxpr import Effects, Jaxpr, close_over
from xlamini.core.primitive import Axis, Cost
from xlamini.core.pytree import first_difference, flatten_from_user, treedef_tuple
from xlamini.core.tangents import is_differentiable, is_zero
from xlamini.core.tracer import aval_of
from xlamini.interpreters.batch import batch
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives.batch_ops import with_batch_first
from xlamini.primitives.convert import convert
from xlamini.primitives.tangent_ops import zeros
from xlamini.transforms.arguments import LeafNames, avals_of, check_outputs, check_values, name_of
from xlamini.transforms.call_rules import linearized
from xlamini.transforms.higher_order import HigherOrder, chosen, cost_of, with_zeros
from xlamini.transforms.tracing import Trace, trace


class Solver(HigherOrder):
    """The jaxpr `solve` is what runs; the others say how it is differentiated. It may return more than the solution."""

    jaxprs: tuple[str, ...]
    """The params that are jaxprs (or None), in the order of `const_lengths`."""

    def parted(self, values: Sequence[Any], lengths: Sequence[int]) -> tuple[dict[str, list[Any]], list[Any]]:
        """What belongs to each jaxpr, and what to the vector."""
        found, start = {}, 0
        for name, length in zip(self.jaxprs, lengths, strict=True):
            found[name] = list(values[start : start + length])
            start += length
        return found, list(values[start:])

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

    def effects(self, params: dict[str, Any]) -> Effects:
        return params["solve"].effects

    def dce(self, used: Sequence[bool], params: dict[str, Any]) -> Any:
        """What is not used of the other results goes; the solution stays whole."""
        solve, lengths = params["solve"], params["const_lengths"]
        count = len(solve.invars) - lengths[self.jaxprs.index("solve")]
        kept = [True] * count + list(used[count:])
        slim, _ = dce(solve, tuple(kept), True)
        return [True] * (sum(lengths) + count), kept, {**params, "solve": slim}

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


# --- the users' functions


class Vector(NamedTuple):
    """A pytree of arrays as its leaves, and what they are called in messages."""

    leaves: list[Any]
    tree: Any
    avals: list[ShapedArray]
    name: str

    @property
    def leaf_names(self) -> LeafNames:
        return LeafNames(self.name, self.tree)

    def like(self, avals: Sequence[ShapedArray]) -> Vector:
        """The same with leaves of other types."""
        leaves = [convert(x, a.dtype, a.weak_type) for x, a in zip(self.leaves, avals, strict=True)]
        return self._replace(leaves=leaves, avals=list(avals))


def vector_of(what: str, x: Any, name: str) -> Vector:
    """A user's pytree as a vector; TypeError for a leaf that is no array and no number."""
    leaves, tree = flatten_from_user(x)
    names = LeafNames(name, tree)
    avals = avals_of(leaves, names, what)
    check_values(leaves, names, what)
    return Vector(leaves, tree, avals, name)


def described(what: str, argument: str, fun: Callable[..., Any]) -> str:
    """How messages speak of a user's function: `custom_root: solve (newton)`."""
    name = name_of(fun)
    return f"{what}: {argument}" if name == argument else f"{what}: {argument} ({name})"


def conformed(which: str, result: Any, due: Vector) -> list[Any]:
    """The leaves of what a user's function returned, which must be of the structure and types of a vector."""
    leaves, tree = flatten_from_user(result)
    check_outputs(leaves, tree, which)
    return alike(f"{which} must return a pytree like {due.name}", "the result", leaves, tree, due)


def alike(problem: str, what: str, leaves: Sequence[Any], tree: Any, due: Vector) -> list[Any]:
    """The leaves in the types of a vector's; ShapeError or TypeError, with the `problem`, if they cannot be."""
    if tree != due.tree:
        raise ShapeError(f"{problem}: {first_difference(due.tree, tree, (due.name, what))}")
    return [_converted(problem, what, x, i, due) for i, x in enumerate(leaves)]


def _converted(problem: str, what: str, x: Any, index: int, due: Vector) -> Any:
    found, aval = aval_of(x), due.avals[index]
    if found.shape == aval.shape and (found.dtype == aval.dtype or found.weak_type):
        return convert(x, aval.dtype, aval.weak_type)
    name = due.leaf_names[index]
    both = f"{found.str_short(short_dtypes=False)}, but {name} is {aval.str_short(short_dtypes=False)}"
    place = what + name[len(due.name) :]
    if found.shape != aval.shape:
        raise ShapeError(f"{problem}: {place} is {both}; give it that shape")
    raise TypeError(f"{problem}: {place} is {both}; convert one of them with .astype")


def with_aux(which: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """The solution and what comes with it."""
    if not has_aux:
        return result, ()
    if not isinstance(result, tuple | list) or len(result) != 2:
        size = f" of length {len(result)}" if isinstance(result, tuple | list) else ""
        raise ShapeError(
            f"{which} must return a pair (solution, aux), as has_aux is True, but it returned a "
            f"{type(result).__name__}{size}"
        )
    return result[0], result[1]


def traced(which: str, fun: Callable[..., Any], *vectors: Vector, values: Sequence[Any] | None = None) -> Trace:
    """Trace a function of vectors."""
    trees = treedef_tuple([treedef_tuple([v.tree for v in vectors]), flatten_from_user({})[1]])
    avals = [a for v in vectors for a in v.avals]
    names = [name for v in vectors for name in v.leaf_names]
    return trace(fun, trees, avals, values, names, which)


def settled(which: str, fun: Callable[..., Any], x: Vector) -> Vector:
    """The vector in the types that `fun` gives it: a number of no strong type, or an integer, becomes what it must."""
    found = traced(which, lambda v: conformed_loosely(which, fun(v), x), x).jaxpr.out_avals
    return x if found == x.avals else x.like(found)


def conformed_loosely(which: str, result: Any, due: Vector) -> list[Any]:
    """Like `conformed`, but a weakly typed or integer leaf of the vector may get another type."""
    leaves, tree = flatten_from_user(result)
    avals = list(due.avals)
    if tree == due.tree:
        check_outputs(leaves, tree, which)
        for i, x in enumerate(leaves):
            found = aval_of(x)
            if found.shape == avals[i].shape and (avals[i].weak_type or avals[i].dtype.kind in "iub"):
                avals[i] = avals[i] if found.weak_type and found.dtype == avals[i].dtype else found
    return conformed(which, result, due._replace(avals=avals))
