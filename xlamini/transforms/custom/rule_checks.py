"""What rules must return; errors say which rule, where in its result, what was due and what to do."""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from xlamini.core.avals import ShapedArray
from xlamini.core.dtypes import float0
from xlamini.core.errors import ShapeError, UnexpectedTracerError
from xlamini.core.primitive import definition
from xlamini.core.pytree import first_difference, flatten_from_user, keystr, tree_flatten_with_path, unflatten
from xlamini.core.tracer import aval_of
from xlamini.primitives.convert import convert
from xlamini.staging.trace.arguments import check_outputs, name_of
from xlamini.transforms.custom.symbolic_zero import SymbolicZero


class RuleName(NamedTuple):
    """How messages speak of a rule: `custom_jvp: the rule f_jvp (file:line) of f`."""

    what: str
    rule: Callable[..., Any]
    of: str
    error: type[Exception] = TypeError

    def __str__(self) -> str:
        return f"{self.what}: the rule {name_of(self.rule)} ({_place(inspect.unwrap(self.rule))}) of {self.of}"


def _place(rule: Any) -> str:
    """File and line where a rule is written; from its code if it has some, which is quick."""
    code = getattr(rule, "__code__", None)
    file, line = definition(getattr(rule, "func", rule)) if code is None else (code.co_filename, code.co_firstlineno)
    return f"{file}:{line}"


def checked_pair(rule: RuleName, result: Any, parts: str) -> tuple[Any, Any]:
    """What a rule returned, which must be a pair."""
    if isinstance(result, tuple | list) and len(result) == 2:
        return result[0], result[1]
    size = f" of length {len(result)}" if isinstance(result, tuple | list) else ""
    raise rule.error(f"{rule} must return a pair ({parts}), but it returned a {type(result).__name__}{size}")


def checked_tree(rule: RuleName, role: str, value: Any, tree: Any) -> list[Any]:
    """The leaves of what a rule returned as `role`; TypeError unless it has the structure of the function's output."""
    leaves, found = flatten_from_user(value)
    if found != tree:
        where = first_difference(tree, found, (f"the output of {rule.of}", f"the rule's {role}"))
        raise rule.error(f"{rule}: its {role} must have the structure of the output of {rule.of}: {where}")
    return leaves


def checked_outputs(rule: RuleName, out: Any, tree: Any, avals: Sequence[ShapedArray]) -> list[Any]:
    """The leaves of what a rule returned as the function's output, in the weak types that this has."""
    leaves = checked_tree(rule, "primal output", out, tree)
    checked_types(rule, "primal output", leaves, tree, avals, f"what {rule.of} itself returns there")
    return [convert(x, a.dtype, a.weak_type) for x, a in zip(leaves, avals, strict=True)]


def checked_types(
    rule: RuleName, role: str, leaves: Sequence[Any], tree: Any, wanted: Sequence[ShapedArray], like: str
) -> None:
    """TypeError unless the leaves of what a rule returned as `role` are of these shapes and dtypes."""
    check_outputs([0.0 if _is_zero(x) else x for x in leaves], tree, f"{rule}, as {role},")
    for i, (x, aval) in enumerate(zip(leaves, wanted, strict=True)):
        found = aval_of(x)
        if (found.shape, found.dtype) != (aval.shape, aval.dtype):
            raise _wrong_type(rule, f"{role}{path_of(tree, i)}", found, aval, like)


def _is_zero(x: Any) -> bool:
    return isinstance(x, SymbolicZero) or getattr(x, "dtype", None) == float0


def _wrong_type(rule: RuleName, leaf: str, found: ShapedArray, wanted: ShapedArray, like: str) -> Exception:
    text = f"{rule} returned {_text(found)} as {leaf}, but {like} is {_text(wanted)}"
    if found.shape != wanted.shape:
        return ShapeError(f"{text}; give it the shape {wanted.shape}, for example with jnp.broadcast_to or .sum")
    if wanted.dtype == float0:
        return rule.error(f"{text}; return the tangent that the rule was given, or np.zeros({wanted.shape}, float0)")
    return rule.error(f"{text}; convert it with .astype({wanted.dtype.name!r})")


def path_of(tree: Any, index: int) -> str:
    """The path of a leaf in a tree, as Python would write it."""
    paths, _ = tree_flatten_with_path(unflatten(tree, range(tree.num_leaves)))
    return keystr(paths[index][0])


def _text(aval: ShapedArray) -> str:
    return aval.str_short(short_dtypes=False)


@contextmanager
def explaining(rule: RuleName, further: str = "") -> Iterator[None]:
    """Say of a tracer that a rule cannot have whose rule it is, and how else that gets the value."""
    try:
        yield
    except UnexpectedTracerError as error:
        problem, *leak = str(error).split(". A traced value must")
        if not problem.startswith("custom_"):
            fix = f"; make the value an argument of {rule.of}{further}" if leak else ""
            error.args = (f"{rule}: {problem}{fix}",)
        raise
