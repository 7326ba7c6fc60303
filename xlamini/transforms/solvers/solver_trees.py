"""Pytrees that a solver works on: their types, and the user's functions of them, traced and checked."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from xlamini.core import Avals, ShapedArray, ShapeError, Values, aval_of, first_difference, flatten_from_user
from xlamini.core.pytree import treedef_tuple
from xlamini.core.tracing.tracer import A_RULE
from xlamini.primitives import convert
from xlamini.staging import LeafNames, Trace, check_callable, checked_avals, name_of
from xlamini.staging.trace.arguments import check_outputs
from xlamini.staging.trace.tracing import trace

Function = Callable[..., Any]


class Vector(NamedTuple):
    """A pytree of arrays as its leaves, with the name that error messages give it."""

    leaves: list[Any]
    tree: Any
    avals: list[ShapedArray]
    name: str

    @property
    def leaf_names(self) -> LeafNames:
        return LeafNames(self.name, self.tree)

    def of_types(self, avals: Avals) -> Vector:
        """The vector with its leaves converted to these types."""
        leaves = [convert(x, a.dtype, a.weak_type) for x, a in zip(self.leaves, avals, strict=True)]
        return self._replace(leaves=leaves, avals=list(avals))


def check_functions(what: str, **functions: Any) -> None:
    """TypeError for an argument that is not a function."""
    for name, fun in functions.items():
        check_callable(f"{what}: {name}", fun)


def described(what: str, argument: str, fun: Function) -> str:
    """How messages name a user's function: `custom_root: solve (newton)`."""
    name = name_of(fun)
    return f"{what}: {argument}" if name == argument else f"{what}: {argument} ({name})"


def trace_equation(which: str, fun: Function, what: str, x: Any, name: str) -> tuple[Vector, Trace]:
    """The user's pytree `x` as a vector, in the types that `fun` gives it, and the trace of `fun`."""
    vector = _settled(which, fun, _vector_of(what, x, name))
    return vector, trace_function(which, lambda v: conformed(which, fun(v), vector), vector)


def trace_solve(which: str, solve: Function, function: Function, vector: Vector, has_aux: bool) -> Trace:
    """The trace of a user's `solve(function, vector)`, which may read concrete values."""

    def solution(x: Any) -> Any:
        found, aux = _with_aux(which, solve(function, x), has_aux)
        return conformed(which, found, vector), aux

    return trace_function(which, solution, vector, values=vector.leaves, derivative_by=A_RULE)


def trace_function(
    which: str, fun: Function, *vectors: Vector, values: Values | None = None, derivative_by: str = ""
) -> Trace:
    """The trace of a function of vectors."""
    trees = treedef_tuple([treedef_tuple([v.tree for v in vectors]), flatten_from_user({})[1]])
    avals = [a for v in vectors for a in v.avals]
    names = [name for v in vectors for name in v.leaf_names]
    return trace(fun, trees, avals, values, names, which, derivative_by=derivative_by)


def conformed(which: str, result: Any, due: Vector) -> list[Any]:
    """The leaves that a user's function returned; an error unless they have the structure and types of `due`."""
    leaves, tree = flatten_from_user(result)
    check_outputs(leaves, tree, which)
    return checked_leaves(f"{which} must return a pytree like {due.name}", "the result", leaves, tree, due)


def checked_leaves(problem: str, what: str, leaves: Values, tree: Any, due: Vector) -> list[Any]:
    """The leaves converted to the types of `due`; ShapeError or TypeError, which begins with `problem`."""
    if tree != due.tree:
        raise ShapeError(f"{problem}: {first_difference(due.tree, tree, (due.name, what))}")
    return [_converted(problem, what, x, i, due) for i, x in enumerate(leaves)]


def _converted(problem: str, what: str, x: Any, index: int, due: Vector) -> Any:
    found, aval = aval_of(x), due.avals[index]
    if found.shape == aval.shape and (found.dtype == aval.dtype or found.weak_type):
        return convert(x, aval.dtype, aval.weak_type)
    name = due.leaf_names[index]
    difference = f"{what}{name[len(due.name) :]} is {found.str_long()}, but {name} is {aval.str_long()}"
    if found.shape != aval.shape:
        raise ShapeError(f"{problem}: {difference}; give it that shape")
    raise TypeError(f"{problem}: {difference}; convert one of them with .astype")


def _vector_of(what: str, x: Any, name: str) -> Vector:
    leaves, tree = flatten_from_user(x)
    names = LeafNames(name, tree)
    avals = checked_avals(leaves, names, what)
    return Vector(leaves, tree, avals, name)


def _settled(which: str, fun: Function, x: Vector) -> Vector:
    """The vector in the types of `fun(x)`: a weakly typed number or an integer is promoted."""
    promoted = trace_function(which, lambda v: _conformed_promoted(which, fun(v), x), x).jaxpr.out_avals
    return x if promoted == x.avals else x.of_types(promoted)


def _conformed_promoted(which: str, result: Any, due: Vector) -> list[Any]:
    """The leaves of a result, in which a weakly typed or integer leaf of the vector may have another type."""
    leaves, tree = flatten_from_user(result)
    if tree != due.tree:
        return conformed(which, result, due)
    check_outputs(leaves, tree, which)
    avals = [_promoted(aval_of(x), a) for x, a in zip(leaves, due.avals, strict=True)]
    return conformed(which, result, due._replace(avals=avals))


def _promoted(found: ShapedArray, aval: ShapedArray) -> ShapedArray:
    may_change = found.shape == aval.shape and (aval.weak_type or aval.dtype.kind in "iub")
    is_same = found.weak_type and found.dtype == aval.dtype
    return found if may_change and not is_same else aval


def _with_aux(which: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    """The solution, and the auxiliary output that comes with it."""
    if not has_aux:
        return result, ()
    if isinstance(result, tuple | list) and len(result) == 2:
        return result[0], result[1]
    size = f" of length {len(result)}" if isinstance(result, tuple | list) else ""
    raise ShapeError(
        f"{which} must return a pair (solution, aux), as has_aux is True, but it returned a "
        f"{type(result).__name__}{size}"
    )
