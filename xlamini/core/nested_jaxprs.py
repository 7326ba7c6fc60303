"""What a program's equations hold: the names of jaxprs among params, and whether something in them is special."""
from __future__ import annotations

from xlamini.core.hi_types import HiAval
from xlamini.core.jaxpr import Equation, Jaxpr, once, subjaxprs


def named_jaxprs(eqn: Equation) -> list[tuple[str, Jaxpr]]:
    """The jaxprs inside an equation's params, each with its name in the ids of its equations: "" for the only one.

    The name is that of the param, such as "cond" for `cond_jaxpr`, or the primitive's own (`jaxpr_names`); the items
    of a tuple are numbered, "branch_0".
    """
    own, params, found = eqn.primitive.jaxpr_names, eqn.params, []
    for key in [*own, *(key for key in params if key not in own)]:
        name, value = own.get(key, key.removesuffix("_jaxpr")), params.get(key)
        if isinstance(value, Jaxpr):
            found.append((name, value))
        elif isinstance(value, tuple | list):
            found += [(f"{name}_{i}", item) for i, item in enumerate(value) if isinstance(item, Jaxpr)]
    return found if len(found) > 1 else [("", jaxpr) for _, jaxpr in found]


def place_inside(eqn: Equation, jaxpr: Jaxpr) -> str:
    """How the ids of the equations of a jaxpr in an equation's params begin: `3.`, or `3.cond.` in one of several."""
    return next((f"{eqn.id}.{name}." for name, inner in named_jaxprs(eqn) if name and inner is jaxpr), f"{eqn.id}.")


@once
def is_expanded(jaxpr: Jaxpr) -> bool:
    """Whether no equation is to be replaced before lowering, in the jaxpr and in those inside its equations."""
    ends = (*jaxpr.invars, *jaxpr.outvars)
    return not (any(map(expands, jaxpr.eqns)) or any(type(v.aval) is HiAval for v in ends))


def expands(eqn: Equation) -> bool:
    """Whether an equation is to be replaced before lowering, or one in its jaxprs."""
    primitive = eqn.primitive
    if primitive.expands:
        return primitive.expands_on([a.aval for a in eqn.invars], eqn.params)
    return primitive.higher_order and not all(map(is_expanded, subjaxprs(eqn)))


@once
def is_eager(jaxpr: Jaxpr) -> bool:
    """Whether it has a primitive that only Python can run, so that no program can be compiled of it."""
    return any(eqn.primitive.eager_only for eqn in jaxpr.eqns)
