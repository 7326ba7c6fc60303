"""What the rules of a custom_vjp function must return; errors say which rule, where in its result, and what was due."""
from __future__ import annotations

from typing import Any, NamedTuple

from xlamini.core.avals import ShapedArray
from xlamini.core.errors import ShapeError
from xlamini.core.pytree import first_difference, flatten_from_user, structure, unflatten
from xlamini.core.pytree.diff import LEAF
from xlamini.core.tangents import Zero, is_differentiable, tangent_aval
from xlamini.core.tracer import aval_of
from xlamini.primitives.convert import convert
from xlamini.staging.trace.arguments import check_outputs
from xlamini.transforms.custom.rule_checks import RuleName, checked_outputs, checked_pair
from xlamini.transforms.custom.symbolic_zero import SymbolicZero


class FwdResult(NamedTuple):
    """What a fwd rule returned: flat outputs, flat residuals, and the tree of these."""

    outs: list[Any]
    residuals: list[Any]
    tree: Any


def checked_fwd(rule: RuleName, call: Any, result: Any) -> FwdResult:
    """The outputs and residuals that fwd returned; an error unless the outputs are like the function's own."""
    out, residuals = checked_pair(rule, result, "output, residuals")
    outs = checked_outputs(rule, out, call.out_tree, call.out_avals)
    leaves, tree = flatten_from_user(residuals)
    check_outputs(leaves, tree, f"{rule}, as residuals,")
    return FwdResult(outs, leaves, tree)


def checked_cotangents(rule: RuleName, call: Any, result: Any) -> list[Any]:
    """A cotangent for every flat argument, of its type or a symbolic zero; an error for what is none."""
    flat = _spread(rule, call, tuple(result) if type(result) is list else result)
    return [_cotangent(rule, call.names[i], ct, a) for i, (ct, a) in enumerate(zip(flat, call.in_avals, strict=True))]


def _spread(rule: RuleName, call: Any, result: Any) -> list[Any]:
    """The leaves of what bwd returned; None stands for zeros in a whole subtree."""
    due, _ = unflatten(call.in_tree, [LEAF] * call.in_tree.num_leaves)
    leaves, tree = flatten_from_user(result, _is_none)
    try:
        subtrees = tree.flatten_up_to(due) if isinstance(result, tuple) else [()]
    except ValueError:
        raise _unlike(rule, due, result) from None
    flat: list[Any] = []
    for leaf, subtree in zip(leaves, subtrees, strict=False):
        if (leaf is not None and subtree is not LEAF) or not isinstance(result, tuple):
            raise _unlike(rule, due, result)
        flat.extend([leaf] * structure(subtree).num_leaves)
    return flat


def _unlike(rule: RuleName, due: Any, result: Any) -> TypeError:
    as_prefix = isinstance(result, tuple)
    where = first_difference(result, due, ("the result", "args"), prefix=as_prefix, is_leaf=_is_none)
    if where is None:
        where = first_difference(due, result, ("args", "the result"))
    return TypeError(
        f"{rule} must return a tuple with one cotangent for each argument ({len(due)} here), of the argument's "
        f"structure, or None for zeros: {where}" + ("; write (ct,)" if len(due) == 1 else "")
    )


def _is_none(x: Any) -> bool:
    return x is None


def _cotangent(rule: RuleName, name: str, ct: Any, aval: ShapedArray) -> Any:
    if ct is None or isinstance(ct, SymbolicZero):
        return Zero(tangent_aval(aval))
    check_outputs([ct], structure(0), f"{rule}, for the argument {name!r},")
    found = aval_of(ct)
    problem = f"{rule}: the argument {name!r} is {_text(aval)}, but its cotangent "
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


def _text(aval: ShapedArray) -> str:
    return aval.str_short(short_dtypes=False)
