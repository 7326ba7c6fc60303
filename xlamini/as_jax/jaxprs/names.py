"""Which equations a library function made: in JAX's programs they are one `jit` equation with the function's name.

Here they are inlined, so that programs stay flat. While a program is traced, each equation gets a place that knows the
outermost library function which made it; `with_calls` puts those of a whole call into an equation, and also what a
rewrite, such as a derivative, made of them. Where some of a call were removed, the rest stay as they are.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xlamini.as_jax.jaxprs.calls import as_call
from xlamini.as_jax.jaxprs.jitted_names import jit_name
from xlamini.core import inline_cached, literal, tree_leaves
from xlamini.core.caching.call_cache import TRACES
from xlamini.core.program.avals import Values
from xlamini.core.program.jaxpr import Atom, Equation, Jaxpr, Literal, Provenance, Var
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import Tracer
from xlamini.staging.run.eager.composite import is_composite, static_names

if TYPE_CHECKING:
    from xlamini.core.program.avals import Dims


class LibraryCall:
    """A call of a library function: the variables and numbers that it was given, its equations, what it returned."""

    count: int
    eqns: Sequence[Equation]
    given: Sequence[Atom]
    name: str
    outs: Sequence[Any]

    def __init__(self, name: str, given: Sequence[Atom], eqns: Sequence[Equation], outs: Sequence[Any]):
        self.name, self.given, self.eqns, self.outs, self.count = name, given, eqns, outs, len(eqns)

    @functools.cached_property
    def results(self) -> list[tuple[int, int]]:
        """The results that the function returned, each as the number of an equation and of its result."""
        places = {v: (i, n) for i, eqn in enumerate(self.eqns) for n, v in enumerate(eqn.outvars)}
        return list(dict.fromkeys(places[v] for v in self.outs if v in places))

    def given_to(self, eqns: Sequence[Equation]) -> list[Atom]:
        """What these equations, copies of its own, were given: variables that they read, and numbers."""
        read, own = ([a for eqn in each for a in eqn.invars] for each in (eqns, self.eqns))
        copies = {a: b for a, b in zip(own, read, strict=True) if type(b) is Var}
        return [copies.get(a, a) for a in self.given if type(a) is Literal or a in copies]

    def made(self, eqns: Sequence[Equation]) -> bool:
        """Whether these are all its equations, in order."""
        return [eqn.primitive for eqn in eqns] == [eqn.primitive for eqn in self.eqns]


class PlaceInCall(Provenance):
    """The place of an equation in a call; `inside` is its place in a call that the function made itself, if any."""

    __slots__ = ("call", "inside")
    call: LibraryCall
    inside: PlaceInCall | None
    lanes: tuple[int, Dims, Dims] | None

    def __init__(self, place: Provenance, call: LibraryCall, inside: PlaceInCall | None):
        super().__init__(place.source, place.scope, place.rewrite, place.origin)
        self.lanes, self.call, self.inside = place.lanes, call, inside


def call_copied(jaxpr: Jaxpr, copies: Sequence[Equation]) -> None:
    """Copies of what a library function adds belong to copies of the calls in it."""
    for eqn, copy in zip(jaxpr.eqns, copies, strict=False):
        if type(eqn.provenance) is PlaceInCall:
            copy.provenance = _moved(eqn.provenance, copy.provenance)


def _moved(place: PlaceInCall, to: Provenance) -> PlaceInCall:
    return PlaceInCall(to, place.call, place.inside and _moved(place.inside, to))


def trace_library_call(fun: Callable[..., Any], args: Values, kwargs: Mapping[str, Any]) -> Any:
    """Call a composite while something is traced, and note which equations it made."""
    name = jit_name(fun)
    if name is None:
        return inline_cached(fun, args, kwargs)
    static = static_names(fun)
    named = zip(fun.__code__.co_varnames, args, strict=False) if static else enumerate(args)
    dynamic = [x for key, x in (*named, *kwargs.items()) if key not in static]
    return _noted(name, functools.partial(inline_cached, fun, args, kwargs), dynamic)


def public_function(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A public function that is no composite, made to note which equations it makes, if JAX jits it."""
    name = None if is_composite(fun) else jit_name(fun)
    if name is None:
        return fun

    @functools.wraps(fun)
    def noting(*args: Any, **kwargs: Any) -> Any:
        traced = [x for x in tree_leaves((args, kwargs)) if type(x) not in (int, float)]
        return _noted(name, functools.partial(fun, *args, **kwargs), traced)

    return noting


def note_operators() -> None:
    """The operators of traced values note which equations they make, where JAX jits them."""
    for operator, name in (("mod", "remainder"), ("floordiv", "floor_divide")):
        for method in (f"__{operator}__", f"__r{operator}__"):
            setattr(Tracer, method, _noting_operator(getattr(Tracer, method), name))


def _noting_operator(method: Callable[..., Any], name: str) -> Callable[..., Any]:
    return lambda self, other: _noted(name, functools.partial(method, self, other), (other,))


def _noted(name: str, call: Callable[[], Any], args: Values) -> Any:
    builder = state.builder
    if type(builder) not in TRACES:
        return call()
    start = len(builder.equations)
    out = call()
    eqns = builder.equations[start:]
    leaves = [out] if type(out) is Tracer else tree_leaves(out)
    given = [a for x in tree_leaves(args) if (a := _as_atom(builder, x)) is not None]
    made = LibraryCall(name, given, eqns, [x.variable for x in leaves if type(x) is Tracer])
    places = dict[Provenance, Provenance]()
    for eqn in eqns:
        if eqn.provenance not in places:
            places[eqn.provenance] = PlaceInCall(eqn.provenance, made, _inside(eqn.provenance, name))
        eqn.provenance = places[eqn.provenance]
    return out


def _as_atom(builder: Any, x: Any) -> Atom | None:
    """The variable of a traced or captured value, a Python number as a literal, None for anything else."""
    if type(x) is Tracer:
        return x.variable
    return literal(x) if type(x) in (int, float) else builder.captured.get(id(x), (None,))[0]


def _inside(place: Provenance, name: str) -> PlaceInCall | None:
    """The place in a call that a function of this name made; one that goes by the same name is the function itself."""
    within = place if type(place) is PlaceInCall else None
    return within.inside if within is not None and within.call.name == name else within


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


def _origin(eqn: Equation) -> tuple[LibraryCall | None, tuple[Any, ...]]:
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
    operands = [a for eqn in eqns for a in eqn.invars if type(a) is Var and a not in inside]
    given = [a for a in call.given if type(a) is Literal] if rewrites else call.given_to(eqns)
    return [as_call(call.name, [*given, *operands], returned, eqns, list(map(_place_inside, eqns)))]


def _place_inside(eqn: Equation) -> Provenance:
    place = eqn.provenance
    return getattr(place, "inside", None) or Provenance(place.source, place.scope)
