"""What the library does with every primitive, and keeps of it: operations state nothing here.

`bind` makes equations of it. Its instance knows which rules were given to it from outside, and what was derived of it.
A rule that few primitives have is a method of a name in `FURTHER`. It is read by one interpreter, which asks for it by
`further`, and does without it by default; most belong to primitives with jaxprs in their params.
"""
from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from xlamini.core import hooks
from xlamini.core.program.avals import Avals, Params
from xlamini.core.program.effects import Effects, no_effects
from xlamini.core.tracing.state import state

primitives: list[Any] = []
"""All primitives, in the order in which they were made."""


class Bindable:
    """The base of primitives."""

    name: str
    given: Mapping[str, Any] = {}
    """The rules that were given to this instance from outside of its class, by name (xlamini/extend)."""
    eager_only = False
    """Whether it has only an implementation in Python, so that no program with it can be compiled."""
    is_bound = False
    """Whether there has been an equation of it, from which rewrites may have been derived."""
    is_pure = True
    """Whether its traits include PURE; `Builder.emit` reads this for every equation."""
    expands = False
    """Whether its rule `expand` replaces its equations before lowering (interpreters/expand.py)."""
    higher_order = False
    """Whether its params contain jaxprs."""
    call_primitive = map_primitive = False
    """JAX's marks of older kinds of calls, of which there are none."""

    def __init__(self, name: str | None = None):
        if name is not None:
            self.name = name
        self.executables: dict[Any, Any] = {}
        primitives.append(self)
        hooks.primitive_made(self)

    def bind(self, *operands: Any, **params: Any) -> Any:
        """Apply the primitive: add an equation to the active builder, or evaluate eagerly without one."""
        builder = state.builder
        if builder is None:
            return hooks.evaluate(self, operands, params)
        return builder.emit(self, operands, params)

    def get_bind_params(self, params: Params) -> Params:
        """The params that `bind` takes after an equation's operands, to evaluate the equation again."""
        return dict(params)

    def __repr__(self) -> str:
        return self.name


FURTHER: Mapping[str, str] = {
    "linearize": "(primals, tangents, **params): jvp under a `TangentBuilder`, which separates the linear program from "
    "the primal one; without it `jvp`",
    "partial_eval": "(unknown, operands, **params): applied under a `TangentBuilder` with some operands unknown, where "
    "a jaxpr among the params may be split in two; without it `bind`",
    "dce": "(used, params): with some outputs unused, the operands that stay, the outputs that stay, and new params; "
    "without it, or for None, all stay",
    "discharge": "(refs, operands, **params): of an equation on refs, for their values as operands: the results, and "
    "the new values of the refs that it writes, by variable; `refs` has the variable of each operand, None if it is no "
    "ref (interpreters/discharge.py)",
    "checked": "(errors, operands, **params): the results and the errors (interpreters/check.py), where jaxprs are "
    "checked too; without it the results are looked at",
    "effects": "(avals, params): the effects of an equation with operands of these types; one that has any is never "
    "removed; without it there are none",
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


def effects_of(primitive: Any, avals: Avals, params: Params) -> Effects:
    """The effects of an equation with operands of these types."""
    rule = further(primitive, "effects")
    return no_effects if rule is None else rule(avals, params)


def around(eqn: Any) -> AbstractContextManager[None]:
    """The context in which the jaxprs among an equation's params are rewritten."""
    rule = further(eqn.primitive, "around")
    return nullcontext() if rule is None else rule(eqn.params)
