"""The primitive `cond`: the branch with a number, of several jaxprs with the same operands.

It takes the branch's number, an int32, and then operands that all branches take. A branch that is known when the
program is lowered is the only one that is lowered.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from xlamini.core.avals import ShapedArray
from xlamini.core.effects import any_ordered
from xlamini.core.jaxpr import Jaxpr, Literal, close_over
from xlamini.core.primitive import Axis, Cost
from xlamini.core.tangents import is_linear
from xlamini.interpreters.batch import batch
from xlamini.interpreters.dce import dce
from xlamini.interpreters.jvp import jvp
from xlamini.interpreters.linearize import linearize
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.interpreters.transpose import transpose
from xlamini.lowering.control_flow import case
from xlamini.staging.call.higher_order import (
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
from xlamini.transforms.cond.as_select import run_all
from xlamini.transforms.cond.branches import joined_avals, same_type, with_common_captured
from xlamini.transforms.cond.residuals import of_linearized, of_parted

INT32 = np.dtype(np.int32)


_INDEX = ShapedArray((), INT32)


class Cond(HigherOrder):
    """The branch with a number; `branches_platforms` are those that each branch is for, where that decides."""

    name = "cond"

    def operand_avals(self, params: dict[str, Any]) -> Sequence[ShapedArray]:
        return [_INDEX, *params["branches"][0].in_avals]

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

    def cost(self, *avals: ShapedArray, branches: tuple[Jaxpr, ...], **params: Any) -> Cost:
        """That of the dearest branch."""
        return max(map(cost_of, branches))

    def linearize(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, branches: tuple[Jaxpr, ...], **params: Any
    ) -> Any:
        index, *operands = primals
        found, nonzero_out = _agreed(linearize, branches, (nonzero_of(tangents[1:]),), lambda f: f.nonzero_out)
        halves = of_linearized(found)
        outs, residuals = halves.parted(operands, self.bind(*primals, branches=halves.first, **params))
        out_tangents = self.bind(index, *residuals, *given(tangents), branches=halves.second, **params)
        return outs, with_zeros(joined_avals(branches), nonzero_out, out_tangents)

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

    def with_captured(self, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        branches = params["branches"]
        closed, values = with_common_captured([close_over(b) for b in branches], [b.consts for b in branches])
        return [operands[0], *values, *operands[1:]], {**params, "branches": closed}

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in super().shown_params(params).items() if value is not None}


cond_p = Cond()


def clamped(index: Any, count: int) -> int:
    """The number of the branch that an index means."""
    return min(max(int(index), 0), count - 1)


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
    return clamped(atom.val, count) if type(atom) is Literal else None


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
