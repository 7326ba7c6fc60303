"""The public functions `cond` and `switch`: one of several branches runs, chosen at run time."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, TypeVarTuple, overload

import numpy as np

from xlamini.core import Jaxpr, ShapedArray, UnknownValue, Values, aval_of, disable_jit, literal, value_of
from xlamini.primitives import clamp, convert, ne
from xlamini.runtime import Array
from xlamini.staging import (
    Cells,
    checked_avals,
    chosen,
    merged,
    rebuilt,
    retry_with_refs,
    store,
    threaded,
    transformed,
    values_of,
)
from xlamini.transforms.cond.primitive import INT32, clamped, cond_p
from xlamini.transforms.cond.trace_branches import Branches, check_branches, forwarded_inputs, trace_branches

_UNSET: Any = type("_Unset", (), {"__repr__": lambda self: "<not given>"})()


R = TypeVar("R")
Ts = TypeVarTuple("Ts")


@overload
def cond(pred: Any, true_fun: Callable[[Array], R], false_fun: Callable[[Array], R], operand: complex, /) -> R: ...
@overload
def cond(pred: Any, true_fun: Callable[[*Ts], R], false_fun: Callable[[*Ts], R], *operands: *Ts) -> R: ...
@overload
def cond(
    pred: Any, true_fun: Callable[..., R], false_fun: Callable[..., R], *operands: Any, operand: Any = ...
) -> R: ...
@overload
def cond(pred: Any, x: Any, true_fun: Callable[[Any], R], y: Any, false_fun: Callable[[Any], R], /) -> R: ...
def cond(
    pred: Any,
    true_fun: Callable[..., Any],
    false_fun: Callable[..., Any],
    *operands: Any,
    operand: Any = _UNSET,
) -> Any:
    """`true_fun(*operands)` if the predicate holds, else `false_fun(*operands)`; only that one runs.

    `pred` is a bool, a number (which holds unless it is 0) or a scalar array of them. Operands and outputs are pytrees
    of arrays; the functions may use arrays and traced values from around them too. Both are traced, and must return
    the same structure, shapes and dtypes (else TypeError). Two older forms are taken too: `operand=x` for a single
    operand, and `cond(pred, true_operand, true_fun, false_operand, false_fun)`.

    Under `vmap` over the predicate both functions run, and each example selects.

    >>> cond(True, lambda x: x + 1, lambda x: x - 1, 3.0)
    Array(4., dtype=float32, weak_type=True)
    """
    if len(operands) == 2 and callable(false_fun) and callable(operands[1]) and not callable(true_fun):
        return _of_own_operands(pred, (true_fun, operands[0]), (false_fun, operands[1]))
    operands = _operands("cond", operands, operand)
    return _with_refs(lambda true, false, *given: _cond(pred, true, false, given), (true_fun, false_fun), operands)


def _of_own_operands(pred: Any, operands: tuple[Any, Any], funs: tuple[Callable[..., Any], Callable[..., Any]]) -> Any:
    """The older form, in which each function has an operand of its own."""
    true_fun, false_fun = funs
    return cond(pred, lambda true, _: true_fun(true), lambda _, false: false_fun(false), *operands)


def _cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    functions = {"true_fun": true_fun, "false_fun": false_fun}
    check_branches("cond", functions)
    _check_pred(pred)
    value = _concrete_choice(pred)
    if value is not None:
        return (true_fun if value else false_fun)(*operands)
    traced = trace_branches("cond", functions, operands, pred)
    branches = traced._replace(jaxprs=traced.jaxprs[::-1])
    if _is_number(pred):
        return applied(branches, _constant, int(bool(pred)))
    return applied(branches, _index_of_pred, chooser=(pred,))


def switch(
    index: Any, branches: Sequence[Callable[..., R]], *operands: Any, operand: Any = _UNSET
) -> R:
    """`branches[index](*operands)`; only that branch runs.

    `index` is an integer or a scalar array of integers; one below 0 means the first branch, one too large the last.
    All branches are traced, and must return the same structure, shapes and dtypes (else TypeError).

    >>> switch(1, [lambda x: x, lambda x: 10 * x, lambda x: 100 * x], 3)
    Array(30, dtype=int32, weak_type=True)
    """
    funs = _sequence(branches)
    operands = _operands("switch", operands, operand)
    return _with_refs(lambda *given: _switch(index, given[: len(funs)], given[len(funs) :]), funs, operands)


def _switch(index: Any, funs: Sequence[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    functions = {f"branches[{i}]": fun for i, fun in enumerate(funs)}
    check_branches("switch", functions)
    _check_index(index)
    if len(funs) == 1:
        return funs[0](*operands)
    value = _concrete_choice(index)
    if value is not None:
        return funs[clamped(value, len(funs))](*operands)
    traced = trace_branches("switch", functions, operands, index)
    if _is_number(index):
        return applied(traced, _constant, clamped(index, len(funs)))
    return applied(traced, _index_in_bounds, len(funs), chooser=(index,))


def _with_refs(choose: Callable[..., Any], funs: Sequence[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    """`choose(*funs, *operands)`, with the refs that any branch reads or writes threaded through all branches."""

    def threading(cells: Cells, *_: Any) -> Any:
        out, values = choose(*[threaded(fun, cells) for fun in funs], values_of(cells), *operands)
        store(cells, values)
        return out

    return retry_with_refs(choose, threading, *funs, *operands)


def applied(
    traced: Branches, index_of: Callable[..., Any], *fixed: Any, chooser: Sequence[Any] = (), **params: Any
) -> Any:
    """The outputs of the chosen branch, as a pytree; `index_of(*fixed, *chooser)` is the branch index.

    An output that is one input in all branches is that operand, and no output of the primitive; but a number of
    Python's or NumPy's becomes an array.
    """
    is_array = [hasattr(x, "aval") for x in traced.operands]
    forwarded = [p if p is None or is_array[p] else None for p in forwarded_inputs(traced.jaxprs)]
    own = [place is None for place in forwarded]
    branches = tuple(_with_outputs(jaxpr, own) for jaxpr in traced.jaxprs)

    options = (branches, index_of, fixed, len(chooser), tuple(params.items()))
    outs = transformed(_bind_cond, branches[0], options, [*chooser, *traced.operands], "cond")
    operands = [traced.operands[place] for place in forwarded if place is not None]
    return rebuilt(traced.out_tree, merged(own, outs, operands))


def _bind_cond(
    first: Jaxpr,
    branches: tuple[Jaxpr, ...],
    index_of: Callable[..., Any],
    fixed: tuple[Any, ...],
    count: int,
    params: tuple[tuple[str, Any], ...],
    operands: Values,
) -> list[Any]:
    index = index_of(*fixed, *operands[:count])
    return cond_p.bind(index, *operands[count:], branches=branches, **dict(params))


def _constant(index: int) -> Any:
    return literal(index, INT32)


def _with_outputs(jaxpr: Jaxpr, used: Sequence[bool]) -> Jaxpr:
    return jaxpr if all(used) else jaxpr.replace(outvars=chosen(jaxpr.outvars, used))


def _operands(what: str, operands: tuple[Any, ...], operand: Any) -> tuple[Any, ...]:
    if operand is _UNSET:
        return operands
    if operands:
        raise TypeError(
            f"{what}: operand= was given beside positional operands, {len(operands)} of them; pass all by position"
        )
    return (operand,)


def _sequence(branches: Any) -> list[Callable[..., Any]]:
    if callable(branches):
        raise TypeError("switch: branches must be a sequence of functions, got a function; write [f, g]")
    try:
        funs = list(branches)
    except TypeError:
        raise TypeError(f"switch: branches must be a sequence of functions, got {branches!r}; write [f, g]") from None
    if not funs:
        raise ValueError("switch: branches is empty; give at least one function")
    return funs


def _check_pred(pred: Any) -> None:
    aval = _scalar("cond", "pred", pred, "; for example x > 0")
    if aval.shape:
        raise TypeError(
            f"cond: pred must be a scalar, got {aval.str_short(short_dtypes=False)}; reduce it with .any() or .all(), "
            "choose elementwise with jnp.where, or map over it with vmap"
        )
    if not _is_real(aval.dtype):
        raise TypeError(f"cond: pred must be a bool or a real number, got dtype {aval.dtype.name}; compare it: x != 0")


def _check_index(index: Any) -> None:
    aval = _scalar("switch", "index", index, " of integers")
    if aval.shape:
        raise TypeError(
            f"switch: index must be a scalar, got {aval.str_short(short_dtypes=False)}; take one of its elements, or "
            "map over it with vmap"
        )
    if getattr(aval.dtype, "kind", "") not in "iu":
        raise TypeError(
            f"switch: index must be an integer, got dtype {aval.dtype.name}; convert it with .astype('int32')"
            + (", or use cond" if aval.dtype == np.bool_ else "")
        )


def _scalar(what: str, name: str, value: Any, fix: str) -> ShapedArray:
    (aval,) = checked_avals([value], [name], what, fix)
    return aval


def _is_real(dtype: Any) -> bool:
    return not hasattr(dtype, "physical_shape") and dtype.kind != "c"


def _is_number(x: Any) -> bool:
    """Whether `x` is a concrete number, so that the branch index is a literal."""
    return isinstance(x, bool | int | float | np.generic | np.ndarray)


def _concrete_choice(x: Any) -> Any:
    """The concrete value by which Python chooses under `disable_jit`; None if the program must choose."""
    if not disable_jit.value:
        return None
    try:
        return value_of(x)
    except UnknownValue:
        return None


def _index_of_pred(pred: Any) -> Any:
    return convert(pred if aval_of(pred).dtype == np.bool_ else ne(pred, 0), INT32)


def _index_in_bounds(count: int, index: Any) -> Any:
    """The index as an int32, clamped to its bounds; a wider dtype is clamped first, as the conversion could wrap."""
    dtype = aval_of(index).dtype
    if dtype.itemsize < 4 or dtype == INT32:
        return clamp(literal(0, INT32), convert(index, INT32), literal(count - 1, INT32))
    return convert(clamp(literal(0, dtype), index, literal(count - 1, dtype)), INT32)
