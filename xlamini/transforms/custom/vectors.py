"""Users' functions of vectors, which are pytrees of arrays: traced, and held to return what they should."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xlamini.core.avals import ShapedArray
from xlamini.core.errors import ShapeError
from xlamini.core.pytree import first_difference, flatten_from_user, treedef_tuple
from xlamini.core.tracer import aval_of
from xlamini.primitives.convert import convert
from xlamini.staging.trace.arguments import LeafNames, avals_of, check_outputs, check_values, name_of
from xlamini.staging.trace.tracing import Trace, trace


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
