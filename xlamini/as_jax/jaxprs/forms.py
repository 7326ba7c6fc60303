"""`jax.extend.core.Jaxpr`: a program in JAX's form, which knows the one of xlamini's that it was made of."""
from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from typing import Any

from xlamini.as_jax.jaxprs.literals import hash_of
from xlamini.core.program.avals import Params, Values
from xlamini.core.program.jaxpr import (
    Atom,
    ClosedJaxpr,
    Equation,
    Jaxpr as CoreJaxpr,
    Literal,
    Var as CoreVar,
    close_over,
)
from xlamini.core.tracing.tracer import build

Literal.hash = property(hash_of)  # pyright: ignore[reportAttributeAccessIssue]
CoreVar.initial_qdd = CoreVar.final_qdd = None  # pyright: ignore[reportAttributeAccessIssue]


class _EveryVar(type):
    """Makes all variables instances of the class below."""

    def __instancecheck__(cls, x: Any) -> bool:
        return type(x) is CoreVar


class Var(metaclass=_EveryVar):
    """A variable, made with what JAX's has beside its type: nothing here."""

    def __new__(cls, aval: Any, initial_qdd: None = None, final_qdd: None = None) -> Any:
        return CoreVar(aval)


class Jaxpr(CoreJaxpr):
    """A program whose equations have JAX's params.

    The library works with `taking_consts()` or `with_consts(...)`: derivatives, batching and compilation are those of
    the program that was traced, as long as nobody has changed its equations.
    """

    __slots__ = ("_handed", "_source")

    def __init__(
        self,
        constvars: Sequence[CoreVar],
        invars: Sequence[CoreVar],
        outvars: Sequence[Atom],
        eqns: Sequence[Equation],
        effects: Any = None,
        debug_info: Any = None,
        is_high: bool = False,
        *,
        source: CoreJaxpr | None = None,
    ):
        name = getattr(debug_info, "func_name", "") if source is None else source.name
        super().__init__(constvars, invars, outvars, eqns, name)
        self._source, self._handed = source and close_over(source), tuple(self.eqns)

    def replace(self, **changes: Any) -> Jaxpr:
        """A new jaxpr with some fields changed."""
        fields = ("constvars", "invars", "outvars", "eqns", "debug_info")
        kept = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info")
        return Jaxpr(**{**{f: getattr(self, f) for f in fields}, **{f: changes[f] for f in kept if f in changes}})

    def taking_consts(self) -> CoreJaxpr:
        """The program for the library, with the constvars as leading inputs; it may capture what equations hold."""
        unchanged = len(self.eqns) == len(self._handed) and all(map(operator.is_, self.eqns, self._handed))
        if self._source is None or not unchanged:
            avals = [v.aval for v in (*self.constvars, *self.invars)]
            self._source, self._handed = build(self._bound, avals, self.name)[0], tuple(self.eqns)
        return self._source

    def with_consts(self, consts: Values) -> CoreJaxpr:
        """The program for the library, with these values for its constvars."""
        program, count = self.taking_consts(), len(consts)
        if not count:
            return program
        variables = [*program.constvars, *program.invars[:count]]
        return program.replace(constvars=variables, consts=[*program.consts, *consts], invars=program.invars[count:])

    def _bound(self, *operands: Any) -> list[Any]:
        """The outputs, by binding each equation."""
        env: dict[Any, Any] = dict(zip([*self.constvars, *self.invars], operands, strict=True))

        def read(atoms: Sequence[Atom]) -> list[Any]:
            return [env[a] if type(a) is CoreVar else a.val for a in atoms]

        for eqn in self.eqns:
            outs = eqn.primitive.bind(*read(eqn.invars), **eqn.params)
            env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs], strict=True))
        return read(self.outvars)


def jaxprs_in_params(params: Params) -> Iterator[CoreJaxpr]:
    """The programs that are params or items of tuple params, without their captured values."""
    for value in params.values():
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, ClosedJaxpr | CoreJaxpr):
                yield item.jaxpr
