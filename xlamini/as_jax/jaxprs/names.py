"""Which equations a library function made: in JAX's programs they are one `jit` equation with the function's name.

Here they are inlined, so that programs stay flat. While a program is traced, each equation gets a place that knows the
outermost library function which made it; `with_calls` puts those of a whole call into an equation, and also what a
rewrite, such as a derivative, made of them. Where some of a call were removed, the rest stay as they are.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from xlamini.as_jax.jaxprs.jitted_names import jit_name
from xlamini.core import repeated, tree_leaves
from xlamini.core.avals import Values
from xlamini.core.jaxpr import Equation, Jaxpr, Literal, Provenance, Var
from xlamini.core.state import state
from xlamini.core.tracer import Builder, Tracer
from xlamini.staging.call.call import jit_p
from xlamini.staging.run.composite import is_composite


class Call:
    """A call of a library function: the equations that it made, and the variables that it returned."""

    def __init__(self, name: str, eqns: Sequence[Equation], outs: Sequence[Any]):
        self.name, self.eqns, self.outs, self.count = name, eqns, outs, len(eqns)

    @functools.cached_property
    def results(self) -> list[tuple[int, int]]:
        """The results that the function returned, each as the number of an equation and of its result."""
        places = {v: (i, n) for i, eqn in enumerate(self.eqns) for n, v in enumerate(eqn.outvars)}
        return list(dict.fromkeys(places[v] for v in self.outs if v in places))

    def made(self, eqns: Sequence[Equation]) -> bool:
        """Whether these are all its equations, in order."""
        return [eqn.primitive for eqn in eqns] == [eqn.primitive for eqn in self.eqns]


class PlaceInCall(Provenance):
    """The place of an equation in a call."""

    __slots__ = ("call",)

    def __init__(self, place: Provenance, call: Call):
        super().__init__(place.source, place.scope, place.rewrite, place.origin)
        self.lanes, self.call = place.lanes, call


def trace_library_call(fun: Callable[..., Any], args: Values, kwargs: Mapping[str, Any]) -> Any:
    """Call a composite while something is traced, and note which equations it made."""
    name = jit_name(fun)
    return repeated(fun, args, kwargs) if name is None else _noted(name, functools.partial(repeated, fun, args, kwargs))


def public_function(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A public function that is no composite, made to note which equations it makes, if JAX jits it."""
    name = None if is_composite(fun) else jit_name(fun)
    if name is None:
        return fun

    @functools.wraps(fun)
    def noting(*args: Any, **kwargs: Any) -> Any:
        return _noted(name, functools.partial(fun, *args, **kwargs))

    return noting


def _noted(name: str, call: Callable[[], Any]) -> Any:
    builder = state.builder
    if type(builder) is not Builder:
        return call()
    start = len(builder.equations)
    out = call()
    eqns = builder.equations[start:]
    leaves = [out] if type(out) is Tracer else tree_leaves(out)
    outs = [x.variable for x in leaves if type(x) is Tracer]
    made, places = Call(name, eqns, outs), dict[Provenance, Provenance]()
    for eqn in eqns:
        place = places.get(eqn.provenance)
        if place is None:
            place = places[eqn.provenance] = PlaceInCall(eqn.provenance, made)
        eqn.provenance = place
    return out


def with_calls(jaxpr: Jaxpr) -> Jaxpr:
    """The program with the equations of each whole call in one `jit` equation."""
    if all(_origin(eqn)[0] is None for eqn in jaxpr.eqns):
        return jaxpr
    read = _last_reads(jaxpr)
    eqns = [new for start, run in _runs(jaxpr.eqns) for new in _called(run, start, read)]
    return jaxpr.replace(eqns=eqns)


def _last_reads(jaxpr: Jaxpr) -> dict[Any, int]:
    """For each variable the number of the last equation that reads it; for outputs, one beyond all."""
    last = {a: i for i, eqn in enumerate(jaxpr.eqns) for a in eqn.invars if type(a) is Var}
    return {**last, **{a: len(jaxpr.eqns) for a in jaxpr.outvars if type(a) is Var}}


def _runs(eqns: Sequence[Equation]) -> Iterator[tuple[int, list[Equation]]]:
    """Equations side by side of one call and one rewrite, each run with the number of its first."""
    start = 0
    while start < len(eqns):
        key, end = _origin(eqns[start]), start + 1
        most = key[0].count if key[0] is not None and not key[1] else len(eqns)
        while key[0] is not None and end < len(eqns) and end - start < most and _origin(eqns[end]) == key:
            end += 1
        yield start, list(eqns[start:end])
        start = end


def _origin(eqn: Equation) -> tuple[Call | None, tuple[Any, ...]]:
    """The call that an equation comes from, and the rewrites between, oldest last."""
    place, rewrites = eqn.provenance, ()
    while type(place) is not PlaceInCall:
        if place.origin is None:
            return None, ()
        place, rewrites = place.origin.provenance, (*rewrites, place.rewrite)
    return place.call, rewrites


def _called(eqns: list[Equation], start: int, read: Mapping[Any, int]) -> list[Equation]:
    """The equations of a run as one: those of a whole call, or what a rewrite made of some of them."""
    call, rewrites = _origin(eqns[0])
    if call is None or not (rewrites or call.made(eqns)):
        return eqns
    made = [v for eqn in eqns for v in eqn.outvars]
    used = [v for v in made if read.get(v, 0) >= start + len(eqns)]
    returned = used if rewrites else [eqns[i].outvars[n] for i, n in call.results]
    if not set(used) <= set(returned):
        return eqns
    inside = set(made)
    operands = list(dict.fromkeys(a for eqn in eqns for a in eqn.invars if type(a) is Var and a not in inside))
    return [_jit_equation(call.name, operands, returned, eqns)]


def _jit_equation(name: str, operands: list[Var], results: list[Var], eqns: list[Equation]) -> Equation:
    place = eqns[0].provenance
    plain = Provenance(place.source, place.scope)  # of no call, so that the equations stay as they are inside
    inside = Jaxpr([], operands, results, [e.replace(provenance=plain) for e in eqns], name)
    params = {"jaxpr": with_new_variables(inside), "name": name}
    return Equation(jit_p, operands, results, params, inside.effects, plain, eqns[0].id)


def with_new_variables(jaxpr: Jaxpr) -> Jaxpr:
    """The same program with variables of its own."""
    env: dict[Any, Any] = {v: Var(v.aval) for v in jaxpr.invars}
    eqns = []
    for eqn in jaxpr.eqns:
        env.update({v: Var(v.aval) for v in eqn.outvars})
        invars = [a if type(a) is Literal else env[a] for a in eqn.invars]
        eqns.append(eqn.replace(invars=invars, outvars=[env[v] for v in eqn.outvars]))
    return Jaxpr([], [env[v] for v in jaxpr.invars], [env[v] for v in jaxpr.outvars], eqns, jaxpr.name)
