"""cond and switch: one of several functions runs, chosen when the program runs.

The primitive takes the branch's number, an int32, and then operands that all branches take. A branch that is known when
the program is lowered is the only one that is lowered.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from xlamini.core.avals import ShapedArray
from xlamini.core.concrete import Unknown, value_of
from xlamini.core.config import disable_jit
from xlamini.core.effects import any_ordered
from xlamini.core.jaxpr import Jaxpr, Literal, close_over
from xlamini.core.primitive import Axis, Cost
from xlamini.core.tangents import is_linear
from xlamini.core.tracer import aval_of, literal
from xlamini.interpreters.batch import batch
from xlamini.interpreters.dce import dce
from xlamini.interpreters.jvp import jvp
from xlamini.interpreters.linearize import linearize
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.interpreters.transpose import transpose
from xlamini.lowering.control_flow import case
from xlamini.primitives.comparison import ne
from xlamini.primitives.convert import convert
from xlamini.primitives.select import clamp
from xlamini.transforms.arguments import avals_of, check_values
from xlamini.transforms.cells import Cells, store, threaded, values_of, with_cells
from xlamini.transforms.control_flow.batched_choice import run_all
from xlamini.transforms.control_flow.branches import (
    Branches,
    check_branches,
    joined_avals,
    passed_on,
    same_type,
    trace_branches,
    with_common_captured,
)
from xlamini.transforms.control_flow.shared_residuals import of_linearized, of_parted
from xlamini.transforms.higher_order import (
    HigherOrder,
    Mask,
    chosen,
    cost_of,
    given,
    inverse,
    merged,
    nonzero_of,
    with_none,
    with_zeros,
)
from xlamini.transforms.one_program import as_one_program
from xlamini.transforms.tracing import rebuilt

INT32 = np.dtype(np.int32)
_UNSET: Any = type("_Unset", (), {"__repr__": lambda self: "<not given>"})()


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
    the same structure, shapes and dtypes (else TypeError). `operand=x` is an older way to pass a single operand.

    Under `vmap` over the predicate both functions run, and each example selects.

    >>> cond(True, lambda x: x + 1, lambda x: x - 1, 3.0)
    Array(4., dtype=float32, weak_type=True)
    """
    operands = _operands("cond", operands, operand)
    return _with_refs(lambda true, false, *given: _cond(pred, true, false, given), (true_fun, false_fun), operands)


def _cond(pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    functions = {"true_fun": true_fun, "false_fun": false_fun}
    check_branches("cond", functions)
    _check_pred(pred)
    now = _to_decide_now(pred)
    if now is not None:
        return (true_fun if now else false_fun)(*operands)
    traced = trace_branches("cond", functions, operands)
    branches = traced._replace(jaxprs=traced.jaxprs[::-1])
    if _is_number(pred):
        return applied(branches, lambda: literal(int(bool(pred)), INT32))
    return applied(branches, _index_of_pred, pred)


def switch(
    index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = _UNSET
) -> Any:
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
    now = _to_decide_now(index)
    if now is not None:
        return funs[_clamped(now, len(funs))](*operands)
    traced = trace_branches("switch", functions, operands)
    if _is_number(index):
        return applied(traced, lambda: literal(_clamped(index, len(funs)), INT32))
    return applied(traced, lambda x: _index_in_bounds(x, len(funs)), index)


def _with_refs(choose: Callable[..., Any], funs: Sequence[Callable[..., Any]], operands: tuple[Any, ...]) -> Any:
    """`choose(*funs, *operands)`, where the functions take and return the refs that one of them touches."""

    def run(cells: Cells) -> Any:
        if not cells:
            return choose(*funs, *operands)
        out, values = choose(*[threaded(fun, cells) for fun in funs], values_of(cells), *operands)
        store(cells, values)
        return out

    return with_cells(run)


def applied(traced: Branches, index_of: Callable[..., Any], *chooser: Any, **params: Any) -> Any:
    """The chosen branch's outputs, as a tree; `index_of(*chooser)` is its number."""
    passed = passed_on(traced.jaxprs)
    own = [place is None for place in passed]
    branches = tuple(_with_outputs(jaxpr, own) for jaxpr in traced.jaxprs)

    def chosen_branch(*xs: Any) -> Any:
        index = index_of(*xs[: len(chooser)])
        return cond_p.bind(index, *xs[len(chooser) :], branches=branches, **params)

    outs = as_one_program(chosen_branch, [*chooser, *traced.operands], "cond")
    same = [traced.operands[place] for place in passed if place is not None]
    return rebuilt(traced.out_tree, merged(own, outs, same))


def _with_outputs(jaxpr: Jaxpr, kept: Sequence[bool]) -> Jaxpr:
    return jaxpr if all(kept) else jaxpr.replace(outvars=chosen(jaxpr.outvars, kept))


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
        found = list(branches)
    except TypeError:
        raise TypeError(f"switch: branches must be a sequence of functions, got {branches!r}; write [f, g]") from None
    if not found:
        raise ValueError("switch: branches is empty; give at least one function")
    return found


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
    (aval,) = avals_of([value], [name], what, fix)
    check_values([value], [name], what)
    return aval


def _is_real(dtype: Any) -> bool:
    return not hasattr(dtype, "physical_shape") and dtype.kind != "c"


def _is_number(x: Any) -> bool:
    """Whether it is a number that is known while tracing."""
    return isinstance(x, bool | int | float | np.generic | np.ndarray)


def _to_decide_now(x: Any) -> Any:
    """The number by which Python chooses, under `disable_jit`; None if the program is to choose."""
    if not disable_jit.value:
        return None
    try:
        return value_of(x)
    except Unknown:
        return None


def _clamped(index: Any, count: int) -> int:
    return min(max(int(index), 0), count - 1)


def _index_of_pred(pred: Any) -> Any:
    return convert(pred if aval_of(pred).dtype == np.bool_ else ne(pred, 0), INT32)


def _index_in_bounds(index: Any, count: int) -> Any:
    """The index as an int32 within bounds; a dtype that int32 does not hold is clamped before it is converted."""
    dtype = aval_of(index).dtype
    if dtype.itemsize < 4 or dtype == INT32:
        return clamp(literal(0, INT32), convert(index, INT32), literal(count - 1, INT32))
    return convert(clamp(literal(0, dtype), index, literal(count - 1, dtype)), INT32)


class Cond(HigherOrder):
    """The branch with a number; `branches_platforms` are those that each branch is for, where that decides."""

    name = "cond"

    def shape_rule(
        self, index: ShapedArray, *avals: ShapedArray, branches: tuple[Jaxpr, ...], **params: Any
    ) -> list[ShapedArray]:
        if index.shape or index.dtype != INT32:
            raise TypeError(f"cond: the branch's number must be an int32 scalar, got {index.str_short()}")
        for i, branch in enumerate(branches):
            _check_types(f"branch {i} takes", branch.in_avals, "its operands are", avals)
            _check_types(f"branch {i} returns", branch.out_avals, "branch 0 returns", branches[0].out_avals)
        return joined_avals(branches)

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, branches: tuple[Jaxpr, ...], **params: Any
    ) -> Any:
        found, nonzero_out = _agreed(jvp, branches, (nonzero_of(tangents[1:]),), lambda f: f[1])
        outs = self.bind(*primals, *given(tangents), branches=tuple(pushed for pushed, _ in found), **params)
        avals = joined_avals(branches)
        return outs[: len(avals)], with_zeros(avals, nonzero_out, outs[len(avals) :])

    def linearize(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, branches: tuple[Jaxpr, ...], **params: Any
    ) -> Any:
        index, *operands = primals
        found, nonzero_out = _agreed(linearize, branches, (nonzero_of(tangents[1:]),), lambda f: f.nonzero_out)
        halves = of_linearized(found)
        outs, residuals = halves.parted(operands, self.bind(*primals, branches=halves.first, **params))
        out_tangents = self.bind(index, *residuals, *given(tangents), branches=halves.second, **params)
        return outs, with_zeros(joined_avals(branches), nonzero_out, out_tangents)

    def transpose(self, cts: Sequence[Any], *operands: Any, branches: tuple[Jaxpr, ...], **params: Any) -> list[Any]:
        index, *others = operands
        linear = tuple(map(is_linear, others))
        found, nonzero_out = _agreed(transpose, branches, (linear, nonzero_of(cts)), lambda f: f[1])
        known = [index, *chosen(others, inverse(linear)), *given(cts)]
        outs = self.bind(*known, branches=tuple(backward for backward, _ in found), **params)
        return [None, *with_none(linear, with_none(nonzero_out, outs))]

    def batch(
        self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], *, branches: Any, **params: Any
    ) -> Any:
        if dims[0] is not None:
            return run_all(axis, operands, dims, branches)
        options = axis, tuple(dims[1:])
        found, batched = _agreed(batch, branches, options, lambda f: tuple(d is not None for d in f[1]))
        out_dims = tuple(0 if mark else None for mark in batched)
        first = [f if f[1] == out_dims else batch(b, *options, batched) for f, b in zip(found, branches, strict=True)]
        return self.bind(*operands, branches=tuple(jaxpr for jaxpr, _ in first), **params), out_dims

    def partial_eval(
        self, unknown: Sequence[bool], operands: Sequence[Any], *, branches: tuple[Jaxpr, ...], **params: Any
    ) -> Any:
        if unknown[0]:
            return self.bind(*operands, branches=branches, **params)
        index, *others = operands
        inner = tuple(unknown[1:])
        found, unknown_out = _agreed(partial_eval, branches, (inner,), lambda f: f.unknown_out)
        halves, known = of_parted(found), chosen(others, inverse(inner))
        outs, residuals = halves.parted(known, self.bind(index, *known, branches=halves.first, **params))
        later = self.bind(index, *residuals, *chosen(others, inner), branches=halves.second, **params)
        return merged(unknown_out, later, outs)

    def dce(self, used: Sequence[bool], params: dict[str, Any]) -> Any:
        branches = params["branches"]
        kept = _union(dce(b, tuple(used))[1] for b in branches)
        slim = tuple(_without(dce(b, tuple(used), True)[0], kept) for b in branches)
        if slim == branches:
            return None
        return [True, *kept], list(used), {**params, "branches": slim}

    def lower(
        self,
        ctx: Any,
        index: Any,
        *operands: Any,
        branches: tuple[Jaxpr, ...],
        branches_platforms: Any = None,
    ) -> Any:
        known = _lowered_index(ctx, branches_platforms, len(branches))
        if known is not None:
            return ctx.body(branches[known], operands, f"branch_{known}_fun")
        bodies = [
            lambda b=b, i=i: ctx.body(b, operands, f"branch_{i}_fun") for i, b in enumerate(branches)
        ]
        return case(ctx, index, bodies, ctx.avals_out, any_ordered(ctx.eqn.effects))

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in super().shown_params(params).items() if value is not None}

    def cost(self, *avals: ShapedArray, branches: tuple[Jaxpr, ...], **params: Any) -> Cost:
        """That of the dearest branch."""
        return max(map(cost_of, branches))

    def with_captured(self, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        branches = params["branches"]
        closed, values = with_common_captured([close_over(b) for b in branches], [b.consts for b in branches])
        return [operands[0], *values, *operands[1:]], {**params, "branches": closed}


cond_p = Cond()


def _agreed(
    rewrite: Callable[..., Any], branches: Sequence[Jaxpr], options: tuple[Any, ...], marks: Callable[[Any], Mask]
) -> tuple[list[Any], Mask]:
    """Each branch rewritten, all with the same outputs marked, which are those that any branch marks by itself."""
    found = [rewrite(branch, *options) for branch in branches]
    union = _union(map(marks, found))
    agreed = [
        f if marks(f) == union else rewrite(branch, *options, union)
        for f, branch in zip(found, branches, strict=True)
    ]
    return agreed, union


def _union(masks: Iterable[Mask]) -> Mask:
    """The places that are marked in any of the masks."""
    return tuple(any(column) for column in zip(*masks, strict=True))


def _without(jaxpr: Jaxpr, kept: Mask) -> Jaxpr:
    return jaxpr if all(kept) else jaxpr.replace(invars=chosen(jaxpr.invars, kept))


def _check_types(what: str, avals: Sequence[ShapedArray], against: str, others: Sequence[ShapedArray]) -> None:
    if len(avals) != len(others) or not all(map(same_type, avals, others)):
        raise TypeError(f"cond: {what} {_short(avals)}, but {against} {_short(others)}")


def _short(avals: Sequence[ShapedArray]) -> str:
    return f"({', '.join(a.str_short() for a in avals)})"


def _lowered_index(ctx: Any, platforms: Any, count: int) -> int | None:
    """The number of the branch if it is known when the program is lowered."""
    if platforms is not None:
        return index_of_platform(platforms, ctx.platform)
    atom = ctx.eqn.invars[0]
    return _clamped(atom.val, count) if type(atom) is Literal else None


def index_of_platform(platforms: Sequence[tuple[str, ...] | None], platform: str) -> int:
    """The number of the branch for a platform; that of `None`, which is for all others, where none names it."""
    name = {"gpu": "cuda"}.get(platform, platform)
    for i, names in enumerate(platforms):
        if names is None or name in names:
            return i
    known = ", ".join(name for names in platforms if names for name in names)
    raise NotImplementedError(
        f"platform_dependent: there is no branch for platform {name!r}, only for {known}; pass {name}= or default="
    )
