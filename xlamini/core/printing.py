"""Jaxprs as text, in JAX's notation.

    { lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = mul b 2.0:f32[] in (c,) }

Captured values stand before the semicolon. A jaxpr inside a call takes over the names of the call's operands and results. One that
is long, or called more than once, is printed once, before the program: `let f = {...} in`. What an equation shows of
its params is for its primitive to say (`Primitive.shown_params`).
"""
from __future__ import annotations

import types
from collections.abc import Iterable, Sequence, Set
from typing import Any, NamedTuple

import numpy as np

from xlamini.core.calls import call_graph, first_paths, named_apart
from xlamini.core.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from xlamini.core.pretty import Comment, Doc, Group, Nest, bracketed, concat, fill, join, line, render
from xlamini.core.pretty import Break as _Break
from xlamini.core.provenance import Provenance, Source


class Remarks(NamedTuple):
    """What is said of each equation in a comment."""

    ids: bool = False
    names: bool = False
    source: bool = False
    provenance: bool = False


def format_jaxpr(jaxpr: Jaxpr, *, width: int = 80, **remarks: bool) -> str:
    """A jaxpr as text of about `width` columns.

    With `ids=True` each equation's id follows it in a comment (`#e17`, in an inner jaxpr `#e3.17`), with `names=True` the name that
    the user gave the value, with `source=True` the user's line, with `provenance=True` the rewrites that made it.
    """
    return render(_Printer(jaxpr, Remarks(**remarks)).program(), width)


class _Printer:
    """Makes the document of one program; keeps the names it has given."""

    def __init__(self, jaxpr: Jaxpr, remarks: Remarks):
        graph = call_graph(jaxpr)
        self.root, self.remarks = jaxpr, remarks
        self.apart = named_apart(graph)
        self.paths = first_paths(graph) if remarks.ids else {}
        self.names = _Names(self.apart.values())
        self.comments = _Comments(remarks) if any(remarks) else None

    def program(self) -> Doc:
        apart = [concat(f"let {name} = ", self.jaxpr(jaxpr), " in") for jaxpr, name in self.apart.items()]
        return join(line, [*apart, self.jaxpr(self.root)])

    def jaxpr(self, jaxpr: Jaxpr, dropped: Set[Var] = frozenset()) -> Doc:
        """`{ lambda captured; inputs. let equations in (outputs,) }`; the variables `dropped` are of no use outside."""
        consts, inputs = self.typed(jaxpr.constvars), self.typed(jaxpr.invars)
        read = _read(jaxpr)
        used = (read | _variables(jaxpr.outvars)) - (dropped - read)
        path = self.paths.get(jaxpr, "")
        equations = join(_next_equation, [self.equation(eqn, used, path) for eqn in jaxpr.eqns])
        body = Nest(2, concat(line, equations))
        head = concat("{ lambda ", consts, "; ", inputs, ". let")
        return Group(Nest(2, concat(head, body, line, "in ", self.outputs(jaxpr.outvars, used), " }")))

    def equation(self, eqn: Equation, used: Set[Var], path: str) -> Doc:
        """`results = primitive[params] operands`."""
        inner, dropped = self.take_over_names(eqn, used)
        parts: list[Doc] = []
        if eqn.outvars:
            parts = [self.typed(eqn.outvars, used), " = "]
        if self.comments is not None:
            parts.append(Comment(self.comments.text(eqn, path)))
        parts.append(eqn.primitive.name)
        if eqn.params:
            parts.append(self.params(eqn, inner, dropped))
        return concat(*parts, " ", fill([self.atom(a) for a in eqn.invars]))

    def take_over_names(self, eqn: Equation, used: Set[Var]) -> tuple[Jaxpr | None, Set[Var]]:
        """Give a called jaxpr's variables the names outside; the jaxpr, and which of its results nobody uses."""
        inner = eqn.params.get(eqn.primitive.called) if eqn.primitive.called else None
        if inner is None or inner in self.apart:
            return None, frozenset()
        self.names.take_over(inner.invars, eqn.invars)
        pairs = list(zip(inner.outvars, eqn.outvars, strict=True))
        self.names.take_over(*zip(*[(i, o) for i, o in pairs if o in used], strict=True) or ((), ()))
        dropped = {i for i, o in pairs if o not in used} - {i for i, o in pairs if o in used}
        return inner, dropped
