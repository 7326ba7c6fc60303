"""The primitive `branch`: one branch of a cond that vmap runs for all lanes, though only some of them chose it.

It is a call of a jaxpr whose first input, which it does not read, is the mask of these lanes. `lanes` says which other
operands have the lanes as leading dimensions. A checked program needs both, since a lane that did not choose the branch
must not fail there: it computes with the operands of a lane that did.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from xlamini.core import Axis, Dims, Jaxpr, Params, Values, aval_of, is_linear
from xlamini.core.program.checks import Checks
from xlamini.core.program.key_uses import KeyUses
from xlamini.interpreters.batch import batch
from xlamini.interpreters.dce import dce
from xlamini.interpreters.linearize import linearize
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.primitives import move_batch_dim, with_batch_first
from xlamini.staging import Mask, chosen, given, inverse, merged, nonzero_of, with_zeros
from xlamini.staging.call.call import Call
from xlamini.staging.call.call_rules import Run, call_jvp, call_transpose
from xlamini.staging.call.higher_order import key_uses_inside
from xlamini.transforms.custom.custom_call import with_unread


def _key_uses(eqn: Any) -> KeyUses:
    """Those of the lanes that chose it: another branch, which has another mask, may use those of others."""
    uses = key_uses_inside(eqn)
    consumed = tuple(use._replace(path=(eqn.invars[0], *use.path)) for use in uses.consumed)
    return uses._replace(consumed=consumed)


class Branch(Call):
    """A call of a branch, which the active lanes chose."""

    name = "branch"
    checks: Checks = Checks(key_uses=_key_uses)
    shares_names = False

    def jvp(self, primals: Values, tangents: Values, *, jaxpr: Jaxpr, lanes: Mask) -> Any:
        return call_jvp(_run((*lanes, *(False for _ in given(tangents)))), jaxpr, primals, tangents)

    def transpose(self, cts: Values, *operands: Any, jaxpr: Jaxpr, lanes: Mask) -> list[Any]:
        kept = chosen(lanes, [not is_linear(x) for x in operands])
        return call_transpose(_run((*kept, *(False for _ in given(cts)))), jaxpr, cts, operands)

    def batch(self, axis: Axis, operands: Values, dims: Dims, *, jaxpr: Jaxpr, lanes: Mask) -> Any:
        moved, at = _moved(axis, operands, dims, lanes)
        batched, out_dims = batch(jaxpr, axis, tuple(at))
        return self.bind(*moved, jaxpr=batched, lanes=lanes), out_dims

    def lower(self, ctx: Any, *operands: Any, jaxpr: Jaxpr, **params: Any) -> Any:
        return ctx.body(jaxpr, operands, jaxpr.name)

    def checked(self, errors: frozenset[str], operands: Values, **params: Any) -> Any:
        from xlamini.transforms.cond.check import checked_branch  # for those who check only

        return checked_branch(self.bind, errors, operands, **params)

    def linearize(self, primals: Values, tangents: Values, *, jaxpr: Jaxpr, lanes: Mask) -> Any:
        lin = linearize(jaxpr, nonzero_of(tangents))
        outs, residuals = lin.split_outputs(primals, _run(lanes)(lin.primal, primals))
        out_tangents = _run_with_mask(lin.tangent, primals[0], [*residuals, *given(tangents)])
        return outs, with_zeros(jaxpr.out_avals, lin.nonzero_out, out_tangents)

    def partial_eval(self, unknown: Sequence[bool], operands: Values, *, jaxpr: Jaxpr, lanes: Mask) -> Any:
        if unknown[0]:
            return self.bind(*operands, jaxpr=jaxpr, lanes=lanes)
        halves, known_inputs = partial_eval(jaxpr, tuple(unknown)), inverse(unknown)
        known = chosen(operands, known_inputs)
        outs, residuals = halves.split_outputs(known, _run(tuple(chosen(lanes, known_inputs)))(halves.known, known))
        later = _run_with_mask(halves.unknown, operands[0], [*residuals, *chosen(operands, unknown)])
        return merged(halves.unknown_out, later, outs)

    def dce(self, used: Sequence[bool], params: Params) -> Any:
        slim, used_inputs = dce(params["jaxpr"], tuple(used))
        ins = (True, *used_inputs[1:])
        if not used_inputs[0]:
            slim = with_unread(slim, 0, [params["jaxpr"].in_avals[0]])
        return list(ins), list(used), {"jaxpr": slim, "lanes": tuple(chosen(params["lanes"], ins))}

    def with_captured(self, operands: Values, params: Params) -> Any:
        jaxpr = params["jaxpr"]
        mask, *others = jaxpr.invars
        closed = jaxpr.replace(constvars=[], consts=[], invars=[mask, *jaxpr.constvars, *others])
        lanes = (params["lanes"][0], *(False for _ in jaxpr.consts), *params["lanes"][1:])
        return [operands[0], *jaxpr.consts, *operands[1:]], {"jaxpr": closed, "lanes": lanes}

    def shown_params(self, params: Params) -> Params:
        return dict(sorted(params.items()))


branch_p: Final = Branch()


def run_branch(active: Any, jaxpr: Jaxpr, operands: Values, lanes: Sequence[bool]) -> list[Any]:
    """The outputs of a batched branch; `lanes` marks the operands that have the lanes as leading dimensions."""
    return branch_p.bind(active, *operands, jaxpr=_taking(active, jaxpr), lanes=(False, *lanes))


def _taking(active: Any, jaxpr: Jaxpr) -> Jaxpr:
    return with_unread(jaxpr, 0, [aval_of(active)])


def _run(lanes: Mask) -> Run:
    return lambda jaxpr, operands: branch_p.bind(*operands, jaxpr=jaxpr, lanes=lanes)


def _run_with_mask(jaxpr: Jaxpr, active: Any, operands: Sequence[Any]) -> list[Any]:
    """The second half of a branch: its residuals are those of active lanes, so none of its operands is replaced."""
    return run_branch(active, jaxpr, operands, (False,) * len(operands))


def _moved(axis: Axis, operands: Values, dims: Dims, lanes: Mask) -> tuple[list[Any], list[int | None]]:
    """The operands, and their batch dimensions: lanes stay leading, and have the dimension of a batched mask."""
    if dims[0] is not None:
        marked = [True, *lanes[1:]]
        moved = with_batch_first(operands, dims, axis.size, marked)
        return [m if mark else x for m, x, mark in zip(moved, operands, marked, strict=True)], [
            0 if mark else d for d, mark in zip(dims, marked, strict=True)
        ]
    rank, moved, at = aval_of(operands[0]).ndim, list(operands), list(dims)
    for i, d in enumerate(dims):
        if lanes[i] and d is not None:
            moved[i], at[i] = move_batch_dim(operands[i], axis.size, d, rank), rank
    return moved, at
