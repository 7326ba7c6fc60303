"""Which jaxprs a program contains, who calls whom, and which of them are printed apart, under a name."""
from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property

from xlamini.core.errors.frames import Source
from xlamini.core.program.bindable import further
from xlamini.core.program.form_call import original
from xlamini.core.program.jaxpr import Equation, Jaxpr, subjaxprs

CallGraph = dict[Jaxpr, list[tuple[Equation, Jaxpr]]]

MAX_INLINE_EQUATIONS = 10


def call_graph(root: Jaxpr) -> CallGraph:
    """Every jaxpr of a program, those nearer to the root first, with the jaxprs in its equations."""
    graph: CallGraph = {}
    waiting = deque([root])
    while waiting:
        jaxpr = waiting.popleft()
        if jaxpr not in graph:
            graph[jaxpr] = [(eqn, inner) for eqn in jaxpr.eqns for inner in subjaxprs(eqn)]
            waiting.extend(inner for _, inner in graph[jaxpr])
    return graph


def named_jaxprs(eqn: Equation) -> list[tuple[str, Jaxpr]]:
    """The jaxprs inside an equation's params, each with its name in the ids of its equations: "" for the only one.

    The name is that of the param, such as "cond" for `cond_jaxpr`, or the primitive's own (`jaxpr_names`); the items
    of a tuple are numbered, "branch_0".
    """
    own, params, found = further(eqn.primitive, "jaxpr_names") or {}, eqn.params, []
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


def named_apart(graph: CallGraph) -> dict[Jaxpr, str]:
    """The names of the jaxprs that are long, or would otherwise be printed more than once."""
    repeated = _repeated(graph)
    taken: Counter[str] = Counter()
    names = {}
    for jaxpr, name in _call_names(graph).items():
        if jaxpr in repeated or len(jaxpr.eqns) > MAX_INLINE_EQUATIONS:
            names[jaxpr] = f"{name}{taken[name] or ''}"
            taken[name] += 1
    return names


def first_paths(graph: CallGraph) -> dict[Jaxpr, str]:
    """For each jaxpr the ids of the equations through which a run first reaches it: `3.17.`, `3.cond.17.`."""
    root = next(iter(graph))
    paths = {root: ""}
    waiting = [(root, _in_order(graph[root]))]
    while waiting:
        jaxpr, calls = waiting[-1]
        eqn, inner = next(calls, (None, None))
        if eqn is None or inner is None:
            waiting.pop()
        elif inner not in paths:
            paths[inner] = f"{paths[jaxpr]}{place_inside(eqn, inner)}"
            waiting.append((inner, _in_order(graph[inner])))
    return paths


class Places:
    """Where the equations of a program are in the user's files. It does not keep the program."""

    def __init__(self, root: Jaxpr):
        paths = first_paths(call_graph(root))
        self._known = [(path, list(map(_named_source, jaxpr.eqns))) for jaxpr, path in paths.items()]

    @cached_property
    def by_label(self) -> Mapping[str, str]:
        """`file:line` by the labels that compiled code has."""
        return {
            f"{name}#e{path}{number}": f"{source.file}:{source.line}"
            for path, equations in self._known
            for name, number, source in equations
            if source is not None
        }


def _named_source(eqn: Equation) -> tuple[str, int, Source | None]:
    return original(eqn).primitive.name, eqn.id, eqn.provenance.source


def _in_order(calls: Sequence[tuple[Equation, Jaxpr]]) -> Iterator[tuple[Equation, Jaxpr]]:
    """Those calls, of each equation in the order of a run: a loop's condition before its body."""
    for eqn in dict.fromkeys(eqn for eqn, _ in calls):
        for _, inner in named_jaxprs(eqn):
            yield eqn, inner


def _call_names(graph: CallGraph) -> dict[Jaxpr, str]:
    names: dict[Jaxpr, str] = {}
    for calls in graph.values():
        for eqn, inner in calls:
            names.setdefault(inner, str(eqn.params.get("name", "jaxpr")).strip("<>"))
    return names


def _repeated(graph: CallGraph) -> set[Jaxpr]:
    """The jaxprs reached on more than one path from the root."""
    uses = Counter(inner for calls in graph.values() for _, inner in calls)
    waiting = [jaxpr for jaxpr, count in uses.items() if count > 1]
    found: set[Jaxpr] = set()
    while waiting:
        jaxpr = waiting.pop()
        if jaxpr not in found:
            found.add(jaxpr)
            waiting.extend(inner for _, inner in graph[jaxpr])
    return found
