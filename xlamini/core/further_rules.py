"""Rules beyond the contract, which few primitives have: a method of the name is the rule.

Each is read by one interpreter, which asks for it by `further`, and does without it by default. Most belong to
primitives with jaxprs in their params.
"""
from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

FURTHER: Mapping[str, str] = {
    "linearize": "(primals, tangents, **params): jvp under a `TangentBuilder`, which separates the linear program from "
    "the primal one; without it `jvp`",
    "partial_eval": "(unknown, operands, **params): applied under a `TangentBuilder` with some operands unknown, where "
    "a jaxpr among the params may be split in two; without it `bind`",
    "dce": "(used, params): with some outputs unused, the operands that stay, the outputs that stay, and new params; "
    "without it, or for None, all stay",
    "checked": "(errors, operands, **params): the results and the errors (interpreters/check.py), where jaxprs are "
    "checked too; without it the results are looked at",
    "physical": "(operands, avals, **params): applied to the arrays of random keys, which have the words of a key "
    "along a last dimension; without it, or for None, the batch rule applies the primitive to each word",
    "expands_on": "(avals, params): whether `expand` replaces an equation with these operands; without it, always",
    "reads_cotangents": "(params): whether the transpose rule takes cotangents as arrays, where they are known",
    "shown_name": "(params): the name that a printed equation shows; without it that of the primitive",
    "around": "(params): the context in which the jaxprs among the params are rewritten",
    "operand_avals": "(params): the input types of the jaxprs; none if their vma may differ from the operands'",
    "is_nested": "(params): whether the jaxprs are compiled as the body of a loop or a branch, not inlined",
    "unroll": "(run, operands, params): the results, from the jaxprs run one after another for operands whose values "
    "are known; `run(jaxpr, operands, iteration)` gives those of a jaxpr, `iteration` that of a loop, else None",
    "widened": "(ins, outs, params): the params where operands and results of users' types become the arrays that they "
    "are made of, as many as `ins` and `outs` say (interpreters/expand.py)",
    "jaxpr_names": "in an equation's id, what stands for each param that is a jaxpr or a tuple of jaxprs, in the order "
    "of a run",
}
"""What each is given, and what it returns."""


def further(primitive: Any, name: str) -> Any:
    """A rule that few primitives have; None if this one has none."""
    return getattr(primitive, name, None)


def around(eqn: Any) -> AbstractContextManager[None]:
    """The context in which the jaxprs among an equation's params are rewritten."""
    rule = further(eqn.primitive, "around")
    return nullcontext() if rule is None else rule(eqn.params)
