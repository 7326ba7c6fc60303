"""Evaluation of a program of refs on refs: that of their values runs, and what it wrote is written to them."""
from __future__ import annotations

from typing import Any

from xlamini.core import Holder, Jaxpr, Values, aval_of, eval_jaxpr, hooks
from xlamini.core.program.ref_types import AbstractRef
from xlamini.interpreters.discharge import discharge, written


def evaluate_on_refs(jaxpr: Jaxpr, operands: Values) -> list[Any]:
    """The outputs of `jaxpr` for operands that may be refs; ValueError for one ref in two places.

    In a program that takes these refs the equations become part of it as they are.
    """
    refs = [x for x in operands if isinstance(x, Holder)]
    if len(set(map(id, refs))) < len(refs):
        raise ValueError("a program of refs is evaluated with the same ref in two places; give it in one")
    inside = list(map(_in_program, operands))
    if not any(isinstance(x, Holder) for x in inside):
        return hooks.evaluate_jaxpr(jaxpr, inside)
    return _by_values(jaxpr, operands)


def _in_program(x: Any) -> Any:
    """A ref as the variable that it is in the program being traced; else the operand itself."""
    variable = x.cell.variable() if isinstance(x, Holder) else None
    return x if variable is None else variable


def _by_values(jaxpr: Jaxpr, operands: Values) -> list[Any]:
    given, changed = dict(zip(jaxpr.invars, operands, strict=True)), written(jaxpr)
    outs = eval_jaxpr(discharge(jaxpr), (), *[_value(v.aval, x) for v, x in given.items()])
    for v, new in zip(changed, outs, strict=False):
        given[v].cell.write(new)
    return outs[len(changed) :]


def _value(aval: Any, x: Any) -> Any:
    """The value of an operand for a variable of this type."""
    if type(aval) is not AbstractRef:
        return x
    if not isinstance(x, Holder):
        raise TypeError(f"the program takes a ref, got {aval_of(x).str_long()}; pass xlamini.new_ref(x)")
    return x.cell.read()
