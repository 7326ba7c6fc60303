"""The primitive `cond`: one of several branches, jaxprs with equal operand and output types, chosen by an index.

Its operands are the branch index, an int32 scalar, and then the operands of the branches. If the index is static when
the program is lowered, only that branch is lowered.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Dims,
    Jaxpr,
    Literal,
    Params,
    ShapedArray,
    Values,
    any_ordered,
    aval_of,
    close_over,
    is_linear,
)
from xlamini.core.program.checks import Checks
from xlamini.core.program.key_uses import KeyUses
from xlamini.core.program.named_axes import divergent_along
from xlamini.core.program.primitive import RunBody
from xlamini.core.tracing.concretization import value_of
from xlamini.interpreters.batch import batch
from xlamini.interpreters.dce import dce
from xlamini.interpreters.jvp import jvp
from xlamini.interpreters.key_reuse import uses_of_call
from xlamini.interpreters.linearize import linearize
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.lowering.control_flow import case
from xlamini.runtime.devices.platforms import default_backend
from xlamini.staging import (
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
from xlamini.transforms.cond.divergence import summed, transposed, with_varying_results
from xlamini.transforms.cond.on_refs import branches_of_values
from xlamini.transforms.cond.residuals import split_linearized, split_partial_eval
from xlamini.transforms.cond.trace_branches import joined_avals, same_type, with_common_captured

INT32 = np.dtype(np.int32)


_INDEX = ShapedArray((), INT32)


def _key_uses(eqn: Any) -> KeyUses:
    """One branch runs, so that all of them may use the same key."""
    uses = [uses_of_call(branch, 1) for branch in eqn.params["branches"]]
    consumed = dict.fromkeys(use for of_branch in uses for use in of_branch.consumed)
    return KeyUses(tuple(consumed), (), tuple(reuse for of_branch in uses for reuse in of_branch.reuses))


class Cond(HigherOrder):
    """A conditional over n branches; with `branches_platforms` the lowering platform chooses the branch."""

    name = "cond"
    checks: Checks = Checks(key_uses=_key_uses)
    jaxpr_names: Mapping[str, str] = {"branches": "branch"}

    def operand_avals(self, params: Params) -> Avals:
        return [_INDEX, *params["branches"][0].in_avals]

    def bind(self, *operands: Any, branches: tuple[Jaxpr, ...], **params: Any) -> Any:
        if aval_of(operands[0]).vma:
            branches = with_varying_results(branches, operands[0])
        return super().bind(*operands, branches=branches, **params)

    def shape_rule(
        self, index: ShapedArray, *avals: ShapedArray, branches: tuple[Jaxpr, ...], **params: Any
    ) -> list[ShapedArray]:
        if index.shape or index.dtype != INT32:
            raise TypeError(f"cond: the branch's number must be an int32 scalar, got {index.str_short()}")
        outs = branches[0].out_avals
        for i, branch in enumerate(branches):
            _check_types(f"branch {i} takes", branch.in_avals, "its operands are", avals)
            _check_types(f"branch {i} returns", branch.out_avals, "branch 0 returns", outs)
        return joined_avals(branches)

    def jvp(
        self, primals: Values, tangents: Values, *, branches: tuple[Jaxpr, ...], **params: Any
    ) -> Any:
        jvps, nonzero_out = _rewrite_all(jvp, branches, (nonzero_of(tangents[1:]),), lambda f: f[1])
        outs = self.bind(*primals, *given(tangents), branches=tuple(jaxpr for jaxpr, _ in jvps), **params)
        avals = joined_avals(branches)
        return outs[: len(avals)], with_zeros(avals, nonzero_out, outs[len(avals) :])

    def transpose(self, cts: Values, *operands: Any, branches: tuple[Jaxpr, ...], **params: Any) -> Values:
        index, *others = operands
        linear = tuple(map(is_linear, others))
        with divergent_along(aval_of(index).vma):
            transposes, nonzero_out = _rewrite_all(transposed, branches, (linear, nonzero_of(cts)), lambda f: f[1])
        inputs = [index, *chosen(others, inverse(linear)), *given(cts)]
        outs = self.bind(*inputs, branches=tuple(backward for backward, _ in transposes), **params)
        avals = [x.aval for x in chosen(chosen(others, linear), nonzero_out)]
        return [None, *with_none(linear, with_none(nonzero_out, summed(outs, avals, index)))]

    def batch(
        self, axis: Axis, operands: Values, dims: Dims, *, branches: Any, **params: Any
    ) -> Any:
        if dims[0] is not None:
            return run_all(axis, operands, dims, branches, self.bind)
        options = axis, tuple(dims[1:])
        made, batched = _rewrite_all(batch, branches, options, lambda f: tuple(d is not None for d in f[1]))
        out_dims = tuple(0 if mark else None for mark in batched)
        first = [f if f[1] == out_dims else batch(b, *options, batched) for f, b in zip(made, branches, strict=True)]
        return self.bind(*operands, branches=tuple(jaxpr for jaxpr, _ in first), **params), out_dims

    def discharge(self, refs: Sequence[Any], operands: Values, *, branches: tuple[Jaxpr, ...], **params: Any) -> Any:
        made, changes = branches_of_values(branches)
        outs = self.bind(*operands, branches=made, **params)
        return outs[sum(changes) :], dict(zip(chosen(refs[1:], changes), outs, strict=False))

    def widened(self, ins: Sequence[int], outs: Sequence[int], params: Params) -> Params:
        return params

    def lower(
        self,
        ctx: Any,
        index: Any,
        *operands: Any,
        branches: tuple[Jaxpr, ...],
        branches_platforms: Any = None,
    ) -> Any:
        static = _static_index(ctx, branches_platforms, len(branches))
        if static is not None:
            return ctx.body(branches[static], operands, f"branch_{static}_fun")
        bodies = [
            lambda b=b, i=i: ctx.body(b, operands, f"branch_{i}_fun") for i, b in enumerate(branches)
        ]
        return case(ctx, index, bodies, ctx.avals_out, any_ordered(ctx.eqn.effects))

    def runs(self, params: Params) -> list[tuple[Jaxpr, int]]:
        """The most expensive branch."""
        return [(max(params["branches"], key=cost_of), 1)]

    def checked(
        self, errors: frozenset[str], operands: Values, *, branches: tuple[Jaxpr, ...], **params: Any
    ) -> Any:
        from xlamini.transforms.cond.check import checked_branches  # for those who check only

        made = checked_branches(branches, errors)
        return made.split_outputs(self.bind(*operands, branches=made.branches, **params))

    def linearize(
        self, primals: Values, tangents: Values, *, branches: tuple[Jaxpr, ...], **params: Any
    ) -> Any:
        index, *operands = primals
        nonzero = (nonzero_of(tangents[1:]),)
        linearized, nonzero_out = _rewrite_all(linearize, branches, nonzero, lambda f: f.nonzero_out)
        split = split_linearized(linearized)
        outs, residuals = split.outs_and_residuals(operands, self.bind(*primals, branches=split.first, **params))
        out_tangents = self.bind(index, *residuals, *given(tangents), branches=split.second, **params)
        return outs, with_zeros(joined_avals(branches), nonzero_out, out_tangents)

    def partial_eval(
        self, unknown: Sequence[bool], operands: Values, *, branches: tuple[Jaxpr, ...], **params: Any
    ) -> Any:
        if unknown[0]:
            return self.bind(*operands, branches=branches, **params)
        index, *others = operands
        inner = tuple(unknown[1:])
        partial, unknown_out = _rewrite_all(partial_eval, branches, (inner,), lambda f: f.unknown_out)
        split, known = split_partial_eval(partial), chosen(others, inverse(inner))
        outs, residuals = split.outs_and_residuals(known, self.bind(index, *known, branches=split.first, **params))
        later = self.bind(index, *residuals, *chosen(others, inner), branches=split.second, **params)
        return merged(unknown_out, later, outs)

    def unroll(self, run: RunBody, operands: Values, params: Params) -> Sequence[Any]:
        (index, *others), platforms = operands, params.get("branches_platforms")
        if platforms is not None:
            return run(params["branches"][index_of_platform(platforms, default_backend())], others, None)
        value = index.val if type(index) is Literal else value_of(index)
        return run(params["branches"][clamped(value, len(params["branches"]))], others, None)

    def dce(self, used: Sequence[bool], params: Params) -> Any:
        branches = params["branches"]
        live = _union(dce(b, tuple(used))[1] for b in branches)
        pruned = tuple(_with_inputs(dce(b, tuple(used), True)[0], live) for b in branches)
        if pruned == branches:
            return None
        return [True, *live], list(used), {**params, "branches": pruned}

    def with_captured(self, operands: Values, params: Params) -> Any:
        branches = params["branches"]
        closed, values = with_common_captured([close_over(b) for b in branches], [b.consts for b in branches])
        return [operands[0], *values, *operands[1:]], {**params, "branches": closed}

    def shown_params(self, params: Params) -> Params:
        return {name: value for name, value in super().shown_params(params).items() if value is not None}


cond_p: Final = Cond()


def clamped(index: Any, count: int) -> int:
    """A branch index clamped to its bounds, as `switch` documents."""
    return min(max(int(index), 0), count - 1)


def _rewrite_all(
    rewrite: Callable[..., Any], branches: Sequence[Jaxpr], options: tuple[Any, ...], marks: Callable[[Any], Mask]
) -> tuple[list[Any], Mask]:
    """The rewrite of every branch, with one mask of outputs: the union of the branches' masks.

    The rewritten branches must return equal types, so an output that one branch marks is marked in all.
    """
    results = [rewrite(branch, *options) for branch in branches]
    union = _union(map(marks, results))
    unified = [
        result if marks(result) == union else rewrite(branch, *options, union)
        for result, branch in zip(results, branches, strict=True)
    ]
    return unified, union


def _union(masks: Iterable[Mask]) -> Mask:
    """The elementwise or of several masks."""
    return tuple(any(column) for column in zip(*masks, strict=True))


def _with_inputs(jaxpr: Jaxpr, live: Mask) -> Jaxpr:
    return jaxpr if all(live) else jaxpr.replace(invars=chosen(jaxpr.invars, live))


def _check_types(what: str, avals: Avals, against: str, others: Avals) -> None:
    if len(avals) != len(others) or not all(map(same_type, avals, others)):
        raise TypeError(f"cond: {what} {_short(avals)}, but {against} {_short(others)}")


def _short(avals: Avals) -> str:
    return f"({', '.join(a.str_short() for a in avals)})"


def _static_index(ctx: Any, platforms: Any, count: int) -> int | None:
    """The branch index if it is static when the program is lowered, else None."""
    if platforms is not None:
        return index_of_platform(platforms, ctx.platform)
    atom = ctx.eqn.invars[0]
    return clamped(atom.val, count) if type(atom) is Literal else None


def index_of_platform(platforms: Sequence[tuple[str, ...] | None], platform: str) -> int:
    """The index of the branch for a platform; `None` in `platforms` is the default branch."""
    name = {"gpu": "cuda"}.get(platform, platform)
    for i, names in enumerate(platforms):
        if names is None or name in names:
            return i
    available = ", ".join(name for names in platforms if names for name in names)
    raise NotImplementedError(
        f"platform_dependent: there is no branch for platform {name!r}, only for {available}; pass {name}= or default="
    )
