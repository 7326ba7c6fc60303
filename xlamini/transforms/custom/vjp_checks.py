"""What the rules of a custom_vjp function must return; errors say which rule, where in its result, and what was due."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from xlamini.core.avals import ShapedArray
from xlamini.core.errors import ShapeError, UnexpectedTracerError
from xlamini.core.primitive import definition
from xlamini.core.pytree import first_difference, flatten_from_user, keystr, structure, tree_flatten_with_path, unflatten
from xlamini.core.pytree_diff import LEAF
from xlamini.core.tangents import Zero, is_differentiable, tangent_aval
from xlamini.core.tracer import aval_of
from xlamini.primitives.convert import convert
from xlamini.transforms.arguments import check_outputs, name_of


class SymbolicZero:
    def __init__(self, aval): self.aval = aval
    def __repr__(self): return "SymbolicZero"


class Pair(NamedTuple):
    """What a fwd rule returned: flat outputs, flat residuals, and the tree of these."""

    outs: list[Any]
    residuals: list[Any]
    tree: Any


def described(which: str, rule: Callable[..., Any], call: Any) -> str:
    """How messages speak of a rule."""
    file, line = definition(rule)
    return f"custom_vjp: the {which} rule {name_of(rule)} ({file}:{line}) of {call.name}"


@contextmanager
def explaining(which: str, rule: Callable[..., Any], call: Any) -> Iterator[None]:
    """Say of a tracer that a rule cannot have how else it gets the value."""
    try:
        yield
    except UnexpectedTracerError as error:
        problem, *leak = str(error).split(". A traced value must")
        if not problem.startswith("custom_vjp"):
            fix = f"; make the value an argument of {call.name}, and return it from fwd among the residuals"
            error.args = (f"{described(which, rule, call)}: {problem}{fix if leak else ''}",)
        raise


def checked_pair(call: Any, fwd: Callable[..., Any], result: Any) -> Pair:
    """The outputs and residuals of fwd; TypeError unless the outputs are of the types of the function's own."""
    if not isinstance(result, tuple | list) or len(result) != 2:
        size = f" of length {len(result)}" if isinstance(result, tuple | list) else ""
        raise TypeError(
            f"{described('fwd', fwd, call)} must return a pair (output, residuals), but it returned a "
            f"{type(result).__name__}{size}; return (output, None) if bwd needs no residuals"
        )
    out, residuals = result
    leaves, tree = flatten_from_user((out, residuals))
    check_outputs(leaves, tree, described("fwd", fwd, call))
    outs, out_tree = flatten_from_user(out)
    if out_tree != call.out_tree:
        where = first_difference(call.out_tree, out_tree, (f"the output of {call.name}", "that of fwd"))
        raise TypeError(f"{described('fwd', fwd, call)} must return the output of {call.name} first: {where}")
    _check_types(call, fwd, outs)
    return Pair(outs, leaves[len(outs) :], structure(residuals))


def _check_types(call: Any, fwd: Callable[..., Any], outs: Sequence[Any]) -> None:
    for i, (found, due) in enumerate(zip(map(aval_of, outs), call.out_avals, strict=True)):
        if (found.shape, found.dtype) != (due.shape, due.dtype):
            raise TypeError(
                f"{described('fwd', fwd, call)} must return the output of {call.name} first, but output"
                f"{_path(call.out_tree, i)} is {_text(found)} in fwd and {_text(due)} in {call.name}; compute both in "
                "the same way"
            )


def checked_cotangents(call: Any, bwd: Callable[..., Any], result: Any) -> list[Any]:
    """A cotangent for every flat argument, of its type or a symbolic zero; an error for what is none."""
    flat = _spread(call, bwd, tuple(result) if type(result) is list else result)
    return [_cotangent(call, bwd, i, ct, a) for i, (ct, a) in enumerate(zip(flat, call.in_avals, strict=True))]


def _spread(call: Any, bwd: Callable[..., Any], result: Any) -> list[Any]:
    """The leaves of what bwd returned; None stands for zeros in a whole subtree."""
    due = unflatten(call.in_tree, [LEAF] * call.in_tree.num_leaves)
    leaves, tree = flatten_from_user(result, lambda x: x is None)
    try:
        if not isinstance(result, tuple):
            raise ValueError
        subtrees = tree.flatten_up_to(due)
    except ValueError:
        raise _unlike(call, bwd, due, result) from None
    flat: list[Any] = []
    for leaf, subtree in zip(leaves, subtrees, strict=True):
        if leaf is not None and subtree is not LEAF:
            raise _unlike(call, bwd, due, result)
        flat.extend([leaf] * structure(subtree).num_leaves)
    return flat


def _unlike(call: Any, bwd: Callable[..., Any], due: Any, result: Any) -> TypeError:
    where = first_difference(result, due, ("the result", "args"), prefix=isinstance(result, tuple), is_leaf=_is_none)
    if where is None:
        where = first_difference(due, result, ("args", "the result"))
    count = len(due)
    return TypeError(
        f"{described('bwd', bwd, call)} must return a tuple with one cotangent for each argument ({count} here), of the "
        f"argument's structure, or None for zeros: {where}" + ("; write (ct,)" if count == 1 else "")
    )


def _is_none(x: Any) -> bool:
    return x is None


def _cotangent(call: Any, bwd: Callable[..., Any], index: int, ct: Any, aval: ShapedArray) -> Any:
    if ct is None or isinstance(ct, SymbolicZero):
        return Zero(tangent_aval(aval))
    check_outputs([ct], structure(0), f"{described('bwd', bwd, call)}, for the argument {call.names[index]!r},")
    found = aval_of(ct)
    problem = f"{described('bwd', bwd, call)}: the argument {call.names[index]!r} is {_text(aval)}, but its cotangent "
    if found.shape != aval.shape:
        raise ShapeError(f"{problem}has shape {found.shape}, not {aval.shape}; sum over the axes it has too many")
    if not is_differentiable(aval):
        return Zero(tangent_aval(aval))
    if not _converts(found, aval):
        raise TypeError(f"{problem}is {_text(found)}; convert it with .astype({aval.dtype.name!r}), or return None")
    return convert(ct, aval.dtype, aval.weak_type)


def _converts(found: ShapedArray, due: ShapedArray) -> bool:
    """Whether a cotangent may be rounded to the argument's dtype: a Python number, or another precision."""
    is_complex = found.dtype.kind == "c"
    return (found.weak_type or is_differentiable(found)) and (due.dtype.kind == "c" or not is_complex)


def _path(tree: Any, index: int) -> str:
    paths, _ = tree_flatten_with_path(unflatten(tree, range(tree.num_leaves)))
    return keystr(paths[index][0])


def _text(aval: ShapedArray) -> str:
    return aval.str_short(short_dtypes=False)
