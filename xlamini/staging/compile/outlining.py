"""Compile a repeated block once: which programs are outlined, where, and what is said about it.

XLA inlines every call before it compiles, so compiling takes longer the deeper a model is, and more than in proportion:
the CPU backend fuses the sums that run through the layers into all that reads them. A call that bears a certain
attribute stays a call; its body is optimised once. In return nothing is fused across it, so only blocks are chosen that
do real work.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xlamini.core.jaxpr import Atom, Equation, Jaxpr, Var, subjaxprs
from xlamini.staging.call.call import jit_p

if TYPE_CHECKING:
    from xlamini.interpreters.outline.boundary import Boundary
    from xlamini.interpreters.outline.outline import Outlined

MIN_EQUATIONS = 600
"""Programs with fewer equations compile fast as they are."""

NO_BLOCK = "no block of equations with matrix products, or other real work, repeats"

_CONTRACTION = 16
"""Operations for each element of the result from which on XLA does not fuse what makes it."""


def outlined(jaxpr: Jaxpr, platform: str, wanted: bool) -> tuple[Jaxpr, str]:
    """The program as it is compiled for a platform, and what was done, or why nothing was."""
    reason = _against(jaxpr, platform, wanted)
    if reason:
        return jaxpr, f"not outlined: {reason}"
    # Imported here because most processes only run short programs.
    from xlamini.interpreters.inline import inline_calls
    from xlamini.interpreters.outline.outline import outline

    flat = inline_calls(jaxpr, jit_p)
    result, functions = outline(flat, _worth, _call)
    if not functions:
        return jaxpr, f"not outlined: {NO_BLOCK}"
    before, after = len(flat.eqns), len(result.eqns) + sum(len(f.body.eqns) for f in functions)
    return result, "\n".join([f"outlined: {before} equations became {after}", *map(_describe, functions)])


def _against(jaxpr: Jaxpr, platform: str, wanted: bool) -> str:
    """Why a program is left as it is; "" if it is not."""
    if not wanted:
        return "switched off"
    if platform != "cpu":
        return f"on {platform} calls are not known to run as fast as one program"
    count = _count(jaxpr, {})
    if count < MIN_EQUATIONS:
        return f"{count} equations compile fast as they are"
    return "" if _has_kernels(jaxpr) else NO_BLOCK


def _count(jaxpr: Jaxpr, known: dict[Jaxpr, int]) -> int:
    """The equations of a program when its calls are written out."""
    if jaxpr not in known:
        known[jaxpr] = len(jaxpr.eqns) + sum(
            _count(inner, known) for eqn in jaxpr.eqns if eqn.primitive is jit_p for inner in subjaxprs(eqn)
        )
    return known[jaxpr]


def _has_kernels(jaxpr: Jaxpr) -> bool:
    """Whether a block could be worth it; asked first, as looking for blocks takes longer."""
    different = {eqn.kind or eqn: eqn for eqn in jaxpr.eqns if not eqn.primitive.cheap}
    return any(eqn.primitive.higher_order or _is_kernel(eqn) for eqn in different.values())


def _worth(boundary: Boundary) -> bool:
    """Whether a block has work in it that is a kernel of its own anyway."""
    return any(map(_is_kernel, boundary.template))


def _is_kernel(eqn: Equation) -> bool:
    if eqn.primitive.cheap:
        return False
    cost = eqn.primitive.cost(*(a.aval for a in eqn.invars), **eqn.params)
    return cost.flops >= _CONTRACTION * max(sum(v.aval.size for v in eqn.outvars), 1)


def _call(body: Jaxpr, operands: list[Atom], results: list[Var], first: Equation) -> Equation:
    params: dict[str, Any] = {"jaxpr": body, "name": body.name, "kept": True}
    return Equation(jit_p, operands, results, params, body.effects, first.provenance, first.id)


def _describe(function: Outlined) -> str:
    family, body = function.family, function.body
    size = sum(p[0].aval.nbytes for p in function.params)
    first = family.members[0][0].provenance.source
    return (
        f"  {body.name}: {len(body.eqns)} equations, called {len(family.starts)} times, takes {len(body.invars)} arrays"
        f" ({size / 1e6:.3g} MB), returns {len(body.outvars)}; the first comes from {first}"
    )
