"""Jaxprs as text, in JAX's notation.

    { lambda ; a:f32[3]. let b:f32[3] = sin a; c:f32[3] = mul b 2.0:f32[] in (c,) }

Captured values stand before the semicolon. A jaxpr that is called takes over the names of the call's operands and
results. One that is long, or used more than once, is printed once, before the program: `let f = {...} in`. What an
equation shows of its params is for its primitive to say (`Primitive.shown_params`).
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Set
from typing import Any

import numpy as np

from xlamini.core.caching.memo import paused_gc
from xlamini.core.errors.frames import Source
from xlamini.core.program.bindable import further
from xlamini.core.program.call_graph import call_graph, first_paths, named_apart
from xlamini.core.program.jaxpr import Atom, Equation, Jaxpr, Literal, Var
from xlamini.core.program.pretty import (
    Break,
    Comment,
    Doc,
    Group,
    Nest,
    bracketed,
    concat,
    fill,
    join,
    layout,
    line,
    render,
)
from xlamini.core.program.primitive import CallLike
from xlamini.core.program.ref_types import RefPrimitive

_nobody: Set[Var] = frozenset()
_next_equation = Break("; ")
_LONGEST_PARAM = 80


def format_jaxpr(
    jaxpr: Jaxpr,
    *,
    width: int = 80,
    ids: bool = False,
    names: bool = False,
    source: bool = False,
    provenance: bool = False,
) -> str:
    """A jaxpr as text of about `width` columns, with remarks on each equation in a comment.

    `ids`: its id, `#e17` (`#e3.17` inside equation 3, `#e3.cond.17` in the condition of a loop); `names`: the name that
    the user gave the value; `source`: the user's line; `provenance`: the rewrites that made it, oldest first.
    """
    with paused_gc():
        printer = _Printer(jaxpr)
        choices = [(printer.id, ids), (printer.user_name, names), (_place, source), (_rewrites, provenance)]
        return render(printer.program([remark for remark, wanted in choices if wanted]), width)


Shown = tuple[str, list[tuple[Equation, str]]]
"""A line, and the equations that begin on it, each with its own text."""


def lines_with_equations(jaxpr: Jaxpr, width: int = 80) -> list[Shown]:
    """The lines of a jaxpr as text, each with the equations that begin on it.

    The text beside an equation is all of it on one line, with its jaxprs as `{…}` and long params cut.
    """
    begun: list[tuple[Jaxpr, Equation]] = []

    def number(inner: Jaxpr, eqn: Equation) -> str:
        begun.append((inner, eqn))
        return f"#{len(begun) - 1}"

    with paused_gc():
        printer = _Printer(jaxpr)
        page = layout(printer.program([number]), width)
        # A kernel's program is shown, but not called as others are: it is not in the graph.
        wanted = {inner: _wanted(inner) for inner in dict.fromkeys(inner for inner, _ in begun)}
        texts = [(eqn, printer.short(eqn, wanted[inner])) for inner, eqn in begun]
    return [
        (text, [texts[int(comment[1:])] for comment in comments])
        for text, comments in zip(page.lines, page.comments, strict=True)
    ]


def format_equation(eqn: Equation, *, width: int = 80) -> str:
    """One equation as text; the names of its variables are good for this text only."""
    with paused_gc():
        alone = Jaxpr([], [], eqn.outvars, [eqn])
        return render(_Printer(alone).equation(alone, eqn, set(eqn.outvars)), width)


Remark = Callable[[Jaxpr, Equation], str]


class _Printer:
    """Makes the document of one program, and keeps the names it has given."""

    def __init__(self, root: Jaxpr):
        self.root, self.graph = root, call_graph(root)
        self.apart = named_apart(self.graph)
        self.names = _Names(self.apart.values())
        self.paths: dict[Jaxpr, str] = {}
        self.targets: dict[Source, str | None] = {}
        self.remarks: Sequence[Remark] = ()

    def program(self, remarks: Sequence[Remark]) -> Doc:
        self.remarks = remarks
        apart = [concat(f"let {name} = ", self.jaxpr(jaxpr), " in") for jaxpr, name in self.apart.items()]
        return join(line, [*apart, self.jaxpr(self.root)])

    def jaxpr(self, jaxpr: Jaxpr, unwanted: Set[Var] = _nobody) -> Doc:
        """`{ lambda captured; inputs. let equations in (outputs,) }`; nobody uses the outputs `unwanted`."""
        used = _wanted(jaxpr, unwanted)
        head = concat("{ lambda ", self.typed(jaxpr.constvars), "; ", self.typed(jaxpr.invars), ". let")
        equations = join(_next_equation, [self.equation(jaxpr, eqn, used) for eqn in jaxpr.eqns])
        outputs = [self.atom(a) if a not in unwanted or a in used else "_" for a in jaxpr.outvars]
        end = concat("in (", _tuple(outputs), ") }")
        return Group(Nest(2, concat(head, Nest(2, concat(line, equations)), line, end)))

    def equation(self, jaxpr: Jaxpr, eqn: Equation, used: Set[Var]) -> Doc:
        """`results = primitive[params] operands`."""
        if isinstance(eqn.primitive, RefPrimitive):
            return concat(Comment(self.comment(jaxpr, eqn)), self.short(eqn, used))
        unwanted = self.take_over_names(eqn, used)
        parts = [self.typed(eqn.outvars, used), " = "] if eqn.outvars else []
        if self.remarks:
            parts.append(Comment(self.comment(jaxpr, eqn)))
        parts.append(_name(eqn))
        if eqn.params:
            parts.append(self.params(eqn, unwanted))
        return concat(*parts, " ", fill([self.atom(a) for a in eqn.invars]))

    def short(self, eqn: Equation, used: Set[Var]) -> str:
        """One equation on one line, its jaxprs as `{…}` and long params cut."""
        outs = " ".join(self.typed_names(eqn.outvars, used))
        if isinstance(eqn.primitive, RefPrimitive):
            return eqn.primitive.notation(outs, list(map(self.atom, eqn.invars)), eqn.params)
        results = f"{outs} = " if eqn.outvars else ""
        shown = eqn.primitive.shown_params(eqn.params).items()
        params = " ".join([f"{key}={self.short_value(value)}" for key, value in shown])
        operands = "".join([f" {self.atom(a)}" for a in eqn.invars])
        return f"{results}{_name(eqn)}{f'[{params}]' if params else ''}{operands}"

    def short_value(self, value: Any) -> str:
        if isinstance(value, Jaxpr):
            return self.apart.get(value) or "{…}"
        if isinstance(value, tuple) and value and all(isinstance(v, Jaxpr) for v in value):
            return f"({' '.join(map(self.short_value, value))})"
        text = " ".join(_text(value).split())
        return text if len(text) <= _LONGEST_PARAM else f"{text[: _LONGEST_PARAM - 1]}…"

    def take_over_names(self, eqn: Equation, used: Set[Var]) -> Set[Var]:
        """Give a called jaxpr's inputs and outputs the names they have outside; which of its outputs nobody uses."""
        call = eqn.primitive
        if not isinstance(call, CallLike) or not call.shares_names or eqn.params[call.called] in self.apart:
            return _nobody
        inner = eqn.params[call.called]
        results = list(zip(inner.outvars, eqn.outvars, strict=True))
        wanted = [(i, o) for i, o in results if o in used]
        self.names.take_over([*zip(inner.invars, eqn.invars, strict=True), *wanted])
        return {i for i, _ in results if type(i) is Var}.difference(inner.invars, [i for i, _ in wanted])

    def params(self, eqn: Equation, unwanted: Set[Var]) -> Doc:
        """`[key=value key=value]`, or nothing if there is nothing to show."""
        shown = eqn.primitive.shown_params(eqn.params)
        values = [(f"{key}=", self.value(value, unwanted)) for key, value in shown.items()]
        pairs = [key + value if isinstance(value, str) else concat(key, value) for key, value in values]
        return bracketed("[", pairs, "]") if pairs else ""

    def value(self, value: Any, unwanted: Set[Var] = _nobody) -> Doc:
        """A param's value: a jaxpr, a tuple of them, or anything that can be shown on one line."""
        if isinstance(value, Jaxpr):
            return self.apart.get(value) or self.jaxpr(value, unwanted)
        if isinstance(value, tuple) and value and all(isinstance(v, Jaxpr) for v in value):
            return bracketed("(", [self.value(v) for v in value], ")")
        return _text(value)

    def typed(self, variables: Sequence[Var], used: Set[Var] | None = None) -> Doc:
        """`a:f32[3] b:i32[]`; `_` for a variable that is not used."""
        return fill(self.typed_names(variables, used))

    def typed_names(self, variables: Sequence[Var], used: Set[Var] | None) -> list[str]:
        name = self.names.of
        return [f"{'_' if used is not None and v not in used else name(v)}:{v.aval.str_short()}" for v in variables]

    def atom(self, atom: Atom) -> str:
        """A variable's name, or a literal with its type."""
        if isinstance(atom, Var):
            return self.names.of(atom)
        value = atom.val.item() if isinstance(atom.val, np.generic) else atom.val
        if atom.aval.weak_type and type(atom.val) is np.float32:
            value = float(str(atom.val))  # as the user wrote it, with the digits that float32 holds
        return f"{value}:{atom.aval.str_short()}"

    def comment(self, jaxpr: Jaxpr, eqn: Equation) -> str:
        text = " ".join(filter(None, [remark(jaxpr, eqn) for remark in self.remarks]))
        return text if text.startswith("#") or not text else f"# {text}"

    def id(self, jaxpr: Jaxpr, eqn: Equation) -> str:
        """`#e3.17`: the equation's id after those of the equations around it, as in StableHLO locations."""
        self.paths = self.paths or first_paths(self.graph)
        return f"#e{self.paths[jaxpr]}{eqn.id}"

    def user_name(self, jaxpr: Jaxpr, eqn: Equation) -> str:
        source = eqn.provenance.source
        if source is None:
            return ""
        if source not in self.targets:
            self.targets[source] = source.target
        return self.targets[source] or ""


class _Names:
    """The names of variables: a, b, … z, ba, bb, …, but for the words that are taken."""

    def __init__(self, taken: Iterable[str]):
        self.given: dict[Var, str] = {}
        self.taken, self.count = set(taken), 0

    def of(self, var: Var) -> str:
        name = self.given.get(var)
        if name is None:
            name = self.given[var] = self._next()
        return name

    def _next(self) -> str:
        while True:
            name, self.count = _letters(self.count), self.count + 1
            if name not in self.taken:
                return name

    def take_over(self, pairs: Iterable[tuple[Atom, Atom]]) -> None:
        """Name each inner variable, unless it has a name, like the outer one; no outer one serves twice."""
        served: set[Var] = set()
        for inner, outer in pairs:
            if isinstance(inner, Literal) or isinstance(outer, Literal):
                continue
            if inner not in self.given and outer not in served:
                served.add(outer)
                self.given[inner] = self.of(outer)


def _name(eqn: Equation) -> str:
    shown = further(eqn.primitive, "shown_name")
    return eqn.primitive.name if shown is None else shown(eqn.params)


def _place(jaxpr: Jaxpr, eqn: Equation) -> str:
    source = eqn.provenance.source
    return "" if source is None else str(source)


def _rewrites(jaxpr: Jaxpr, eqn: Equation) -> str:
    return ", ".join(eqn.provenance.path)


def _letters(number: int) -> str:
    """A number in base 26 with the digits a to z."""
    letters = ""
    while number or not letters:
        number, digit = divmod(number, 26)
        letters = chr(ord("a") + digit) + letters
    return letters


def _variables(atoms: Iterable[Atom]) -> set[Var]:
    return {a for a in atoms if type(a) is Var}


def _wanted(jaxpr: Jaxpr, unwanted: Set[Var] = _nobody) -> set[Var]:
    """The variables that an equation reads, and the outputs that are not `unwanted`."""
    return _read(jaxpr) | (_variables(jaxpr.outvars) - unwanted)


def _read(jaxpr: Jaxpr) -> set[Var]:
    """The variables that an equation reads."""
    return {a for eqn in jaxpr.eqns for a in eqn.invars if type(a) is Var}


def _tuple(items: Sequence[str]) -> Doc:
    return f"{items[0]}," if len(items) == 1 else fill(items, ",")


def _text(value: Any, inside: bool = False) -> str:
    """A value on one line: tuples in brackets, NumPy's scalars as numbers, functions by their names."""
    if type(value) in (tuple, list):
        items = ", ".join([_text(v, inside=True) for v in value])
        comma = "," if type(value) is tuple and len(value) == 1 else ""
        return f"({items}{comma})" if type(value) is tuple else f"[{items}]"
    if isinstance(value, np.generic):
        value = value.item()
    if callable(value) and not isinstance(value, type):
        return getattr(value, "__name__", type(value).__name__)
    return repr(value) if inside and not isinstance(value, np.dtype) else str(value)
