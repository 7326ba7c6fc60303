"""Outlining: a block of equations that a program repeats is compiled once and called.

XLA inlines every call before it compiles, so compile time grows faster than a model's depth: the CPU backend fuses the
sums that run through the layers into each of their readers. A call with the attribute `inlineable = "false"` stays a
call, and its body is optimised once. XLA does not fuse across such a call, so only blocks with real work, such as
matrix products, are outlined.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from xlamini.core import REMATERIALIZABLE, Atom, Equation, Jaxpr, Params, Var, subjaxprs
from xlamini.core.program.effects import no_effects
from xlamini.core.program.equation_kind import equation_cost
from xlamini.core.program.jaxpr import Provenance
from xlamini.lowering.gpu import is_gpu_platform
from xlamini.primitives.placement.identity import copy as copy_p
from xlamini.staging.call.call import jit_p

if TYPE_CHECKING:
    from xlamini.interpreters.outline.boundary import Boundary
    from xlamini.interpreters.outline.outline import Outlined
    from xlamini.interpreters.outline.segments import Lengths

MIN_EQUATIONS = 600
"""Shorter programs are not outlined: they compile fast anyway."""

NO_BLOCK = "no block of equations with matrix products, or other real work, repeats"

SEGMENT_BLOCKS = 4
"""The blocks of a segment, at least: operations of two segments do not overlap.

Steps of segments of one block take 10% longer than one program, of four blocks 0 to 8%."""

SEGMENT_FLOPS = 20e6
"""The operations of a segment, at least: a launch takes as long as 4 million."""

MIN_SAVED = 16
"""A program runs in segments if at least so many blocks need not be compiled, because an equal segment is."""

_CONTRACTION = 16
"""Flops per element of the result from which XLA no longer fuses an operation into its consumers."""


class Outline(NamedTuple):
    """A program, outlined if it has repeated blocks; `report` describes them, or says why there are none."""

    jaxpr: Jaxpr
    report: str
    lengths: Lengths | None = None
    """For each block, how many calls in a row are a segment at least, if each is an executable of its own."""


def outlined(jaxpr: Jaxpr, platform: str, wanted: bool, in_segments: bool) -> Outline:
    """The outline of a program; `in_segments` if it may run in segments."""
    reason = _against(jaxpr, platform, wanted)
    if reason:
        return Outline(jaxpr, f"not outlined: {reason}")
    # Imported here because most processes only run short programs.
    from xlamini.interpreters.inline import inline_calls
    from xlamini.interpreters.outline.divisors import with_own_divisors
    from xlamini.interpreters.outline.outline import outline, repeated_blocks

    flat = with_own_divisors(inline_calls(jaxpr, jit_p))
    boundaries = repeated_blocks(flat, _worth)
    if not boundaries:
        return Outline(jaxpr, f"not outlined: {NO_BLOCK}")
    lengths = list(map(_segment_length, boundaries))
    apart = in_segments and sum(map(_saved, boundaries, lengths)) >= MIN_SAVED
    result, functions = outline(_with_own_outputs(flat) if apart else flat, boundaries, _call, apart)
    before, after = len(flat.eqns), len(result.eqns) + sum(len(f.body.eqns) for f in functions)
    report = "\n".join([f"outlined: {before} equations became {after}", *map(_describe, functions)])
    bodies = [f.body for f in functions]
    return Outline(result, report, dict(zip(bodies, lengths, strict=True)) if apart else None)


def chunked(jaxpr: Jaxpr, lengths: Lengths) -> Jaxpr:
    """An outlined program as calls of its segments."""
    from xlamini.interpreters.outline.segments import chunk  # for deep programs only

    return chunk(jaxpr, lengths, _call)


def _with_own_outputs(jaxpr: Jaxpr) -> Jaxpr:
    """The program with copies for outputs that are no results of their own: inputs, numbers, a value that is two."""
    taken: set[Atom] = {*jaxpr.invars}
    copies, outputs = [], []
    for x in jaxpr.outvars:
        if type(x) is not Var or x in taken:
            copies.append(_copy_of(x, len(jaxpr.eqns) + len(copies)))
            x = copies[-1].outvars[0]
        taken.add(x)
        outputs.append(x)
    return jaxpr.replace(eqns=[*jaxpr.eqns, *copies], outvars=outputs)


def _copy_of(x: Atom, id: int) -> Equation:
    return Equation(copy_p, [x], [Var(x.aval)], {}, no_effects, Provenance(None), id)


def _saved(boundary: Boundary, length: int) -> int:
    """How many blocks need not be compiled if those in a row run in segments of this length."""
    return sum(max(row - length, 0) for row in boundary.family.rows)


def _segment_length(boundary: Boundary) -> int:
    """How many blocks in a row are a segment, at least."""
    flops = sum(equation_cost(eqn).flops for eqn in boundary.template)
    return max(SEGMENT_BLOCKS, math.ceil(SEGMENT_FLOPS / flops))


def _against(jaxpr: Jaxpr, platform: str, wanted: bool) -> str:
    """The reason not to outline a program; "" if there is none."""
    if not wanted:
        return "switched off"
    if platform != "cpu":
        return _against_calls_on(platform)
    count = _count(jaxpr, {})
    if count < MIN_EQUATIONS:
        return f"{count} equations compile fast as they are"
    return "" if _has_kernels(jaxpr) else NO_BLOCK


def _against_calls_on(platform: str) -> str:
    if is_gpu_platform(platform):
        return "on a GPU blocks that are called take two to four times as long as one program"
    return f"on {platform} calls are not known to run as fast as one program"


def _count(jaxpr: Jaxpr, known: dict[Jaxpr, int]) -> int:
    """The number of equations with all calls inlined."""
    if jaxpr not in known:
        known[jaxpr] = len(jaxpr.eqns) + sum(
            _count(inner, known) for eqn in jaxpr.eqns if eqn.primitive is jit_p for inner in subjaxprs(eqn)
        )
    return known[jaxpr]


def _has_kernels(jaxpr: Jaxpr) -> bool:
    """Whether any equation is a kernel of its own; a cheap test before the search for blocks."""
    different = {eqn.kind or eqn: eqn for eqn in jaxpr.eqns if not eqn.primitive.traits & REMATERIALIZABLE}
    return any(eqn.primitive.higher_order or _is_kernel(eqn) for eqn in different.values())


def _worth(boundary: Boundary) -> bool:
    """Whether a block contains an operation that XLA compiles to a kernel of its own."""
    return any(map(_is_kernel, boundary.template))


def _is_kernel(eqn: Equation) -> bool:
    if eqn.primitive.traits & REMATERIALIZABLE:
        return False
    cost = equation_cost(eqn)
    return cost.flops >= _CONTRACTION * max(sum(v.aval.size for v in eqn.outvars), 1)


def _call(body: Jaxpr, operands: Sequence[Atom], results: Sequence[Var], first: Equation) -> Equation:
    params: Params = {"jaxpr": body, "name": body.name, "noinline": True}
    return Equation(jit_p, operands, results, params, body.effects, first.provenance, first.id)


def _describe(function: Outlined) -> str:
    family, body = function.family, function.body
    size = sum(p[0].aval.nbytes for p in function.params)
    first = family.members[0][0].provenance.source
    return (
        f"  {body.name}: {len(body.eqns)} equations, called {len(family.starts)} times, takes {len(body.invars)} arrays"
        f" ({size / 1e6:.3g} MB), returns {len(body.outvars)}; the first comes from {first}"
    )
