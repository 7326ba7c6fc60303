"""Evaluation of a program of refs on refs: it is called, as a jitted function of them would be."""
from __future__ import annotations

from typing import Any

from xlamini.core import Holder, Jaxpr, Values, eval_jaxpr
from xlamini.staging.run.jit.jit_api import jit


def evaluate_on_refs(jaxpr: Jaxpr, operands: Values) -> list[Any]:
    """The outputs of `jaxpr` for operands that may be refs; in a program that takes these, its equations join that."""
    variables = [x.cell.variable() if isinstance(x, Holder) else x for x in operands]
    if all(x is not None for x in variables):
        return eval_jaxpr(jaxpr, (), *variables)

    def called(*operands: Any) -> list[Any]:
        return eval_jaxpr(jaxpr, (), *operands)

    return jit(called)(*operands)
