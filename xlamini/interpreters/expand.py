"""Expansion: equations of primitives that are written in terms of others are replaced by those others.

    expand(jaxpr)  ->  jaxpr without primitives that have an `expand` rule

It runs after all transformations and before lowering, so that each transformation meets the primitive itself. An array
that a rule captures becomes a constvar, and with that a hidden argument of the compiled program.

A variable of a user's type (core/program/hi_types.py) becomes the arrays that it is made of, among inputs, results and
operands too. The `expand` rules see its values: objects of the user's class, whose arrays are those of the expanded
program.
"""
from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from xlamini.core import Avals, Equation, Jaxpr, Params, ShapedArray, Values, aval_of, hooks, rewrite
from xlamini.core.program.bindable import further
from xlamini.core.program.hi_types import HiAval, fits, has_hi, lo_avals, lo_types, lowered, raised
from xlamini.core.program.jaxpr import derived, expands, is_expanded
from xlamini.core.program.rewriting import rewritten_params
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.bindings import bound, builder, read
from xlamini.primitives import convert, placed_as


@rewrite
def expand(jaxpr: Jaxpr) -> Jaxpr:
    """The program in terms of primitives that are lowered; `jaxpr` itself if it has no others."""
    if is_expanded(jaxpr):
        return jaxpr
    result, _ = build(lambda *arrays: _push(jaxpr, arrays), lo_avals(jaxpr.in_avals), jaxpr.name)
    return expand(result)


def _push(jaxpr: Jaxpr, arrays: Sequence[Any]) -> list[Any]:
    env, target = bound(jaxpr, raised(jaxpr.in_avals, arrays)), builder()
    for eqn in jaxpr.eqns:
        inputs = read(env, eqn.invars)
        if expands(eqn):
            target.provenance = derived("expand", eqn)
            outs = _expanded(eqn, inputs)
            target.provenance = None
        else:
            _refuse_users_types(eqn)
            outs = target.replay(eqn, inputs)
        env.update(zip(eqn.outvars, outs, strict=True))
    return lowered(jaxpr.out_avals, read(env, jaxpr.outvars))


def _refuse_users_types(eqn: Equation) -> None:
    """TypeError for a value of a user's type where only an array is understood."""
    for atom in eqn.invars:
        if type(atom.aval) is HiAval:
            source = eqn.provenance.source
            raise TypeError(
                f"{eqn.primitive.name} takes arrays, but is given a value of the type {atom.aval}"
                f"{f', at {source}' if source else ''}; take the arrays out of it with a primitive of the type"
            )


def _expanded(eqn: Equation, inputs: Values) -> Sequence[Any]:
    if not eqn.primitive.expands:
        return _bound(eqn, inputs, rewritten_params(eqn, expand))
    found = eqn.primitive.expand(*inputs, **eqn.params)
    outs = list(found) if eqn.primitive.multiple_results else [found]
    expected = [v.aval for v in eqn.outvars]
    if not _fit(list(map(aval_of, outs)), expected):
        raise TypeError(
            f"the expand rule of '{eqn.primitive}' returns {_shown(map(aval_of, outs))}, but its shape rule says "
            f"{_shown(expected)}; make the two agree"
        )
    return [_as_typed(x, aval) for x, aval in zip(outs, expected, strict=True)]


def _bound(eqn: Equation, inputs: Values, params: Params) -> Sequence[Any]:
    """The results of a higher-order primitive, whose jaxprs are expanded."""
    avals, outs = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
    if not (has_hi(avals) or has_hi(outs)):
        return eqn.primitive.bind(*inputs, **params)
    ins, results = ([len(lo_types(a)) for a in some] for some in (avals, outs))
    params = further(eqn.primitive, "widened")(ins, results, params)
    return raised(outs, eqn.primitive.bind(*lowered(avals, inputs), **params))


def _as_typed(x: Any, aval: ShapedArray) -> Any:
    """A result with the weak type, the sharding and the varying axes that the equation says."""
    if type(aval) is HiAval:
        return _with_typed_parts(x, aval)
    typed = convert(x, aval.dtype, aval.weak_type)
    return placed_as(hooks.cast_varying(typed, aval.vma) if aval.vma else typed, aval)


def _with_typed_parts(x: Any, aval: HiAval) -> Any:
    """A value of a user's type whose arrays are of the lo types; TypeError if it is made of other arrays.

    Where a lo type says nothing of shardings, the array stays split as it is.
    """
    parts, types = lowered([aval], [x]), lo_types(aval)
    if not _fit(list(map(aval_of, parts)), types):
        raise TypeError(
            f"the type {aval.ty}: lower_val returns {_shown(map(aval_of, parts))}, but lo_ty says {_shown(types)}; "
            "make the two agree"
        )
    wanted = [
        lo if lo.explicit_sharding else lo.with_sharding(aval_of(x).explicit_sharding)
        for lo, x in zip(types, parts, strict=True)
    ]
    typed = list(map(_as_typed, parts, wanted))
    return x if all(map(operator.is_, parts, typed)) else raised([aval], typed)[0]


def _fit(found: Avals, due: Avals) -> bool:
    return len(found) == len(due) and all(map(fits, found, due))


def _shown(avals: Any) -> str:
    return ", ".join(map(ShapedArray.str_long, avals)) or "nothing"
