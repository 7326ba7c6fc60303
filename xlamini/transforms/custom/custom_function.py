"""The base of custom_jvp, custom_vjp and custom_vmap: a function with rules of the user's own.

While something is traced a call is one equation, with the function as a jaxpr and the rules as params. A rule is traced
when it is first needed, since it often calls the function itself. Without a trace a call is a plain Python call.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Generic, NamedTuple, ParamSpec, TypeVar

from xlamini.core import Builder, Jaxpr, Tracer, Values, api_boundary_methods, flatten_call
from xlamini.core.errors.frames import is_own
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import A_RULE
from xlamini.core.wrapping import wraps
from xlamini.staging import ArgNames, Trace, check_callable, checked_avals, name_of, rebuilt
from xlamini.staging.trace.static_args import Names, Numbers, Selected
from xlamini.staging.trace.tracing import kind_of_trace, trace
from xlamini.transforms.custom.call_site import CallSite, is_concrete, with_fixed
from xlamini.transforms.custom.closure_convert import captured_names, closed_over
from xlamini.transforms.custom.custom_call import with_unread
from xlamini.transforms.custom.rule_contract import CallTypes

P = ParamSpec("P")
R = TypeVar("R")
Rule = TypeVar("Rule", bound=Callable[..., tuple[Any, Any]])


class CustomCallTrace(NamedTuple):
    """One call, traced: the leaves of its arguments, and the tracers `closed` that its rules close over."""

    fun: Callable[..., Any]
    leaves: list[Any]
    traced: Trace
    closed: Sequence[Tracer]
    site: CallSite

    @property
    def operands(self) -> list[Any]:
        """The values that the function captured, those that its rules close over, the arguments."""
        return [*self.traced.captured, *self.closed, *self.leaves]

    @property
    def captured(self) -> tuple[str, ...]:
        """The names of the values that the function captured."""
        return captured_names(self.fun, self.traced.captured)

    @property
    def jaxpr(self) -> Jaxpr:
        """The function as a jaxpr of the operands; it does not read what the rules close over."""
        return with_unread(self.traced.jaxpr, len(self.traced.captured), [x.aval for x in self.closed])


class CustomFunction(Generic[P, R]):
    """A function whose calls are equations with rules. A subclass binds the equation, in `_bind`."""

    what: ClassVar[str]
    setter: ClassVar[str]
    """How a rule is set, for the error that there is none."""
    instead: ClassVar[str] = ", or list it in nondiff_argnums"
    """What to do with an argument that is no array."""
    nondiff_argnums: tuple[int, ...]

    def __init__(self, fun: Callable[P, R], nondiff_argnums: Numbers = (), nondiff_argnames: Names = ()):
        check_callable(self.what, fun)
        wraps(fun)(self)
        self.fun = fun
        self.nondiff_argnums = Selected("nondiff", fun, nondiff_argnums, nondiff_argnames, self.what).nums

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        name, rules = name_of(self.fun), self._rules()
        if not rules:
            raise AttributeError(
                f"{self.what}: {name} has no rule yet; set one before it is called, with {name}.{self.setter}"
            )
        positional = self._positional(name, args, kwargs)
        if _is_known(self.fun, *rules, *positional):
            return self.fun(*positional)  # type: ignore[call-arg]
        call = self._traced(positional, rules)
        return rebuilt(call.traced.out_tree, self._bind(call))

    def _rules(self) -> list[Any]:
        """The rules that the user has set."""
        raise NotImplementedError

    def _bind(self, call: CustomCallTrace) -> list[Any]:
        """The call as an equation of the program being traced."""
        raise NotImplementedError

    @functools.cached_property
    def _signature(self) -> inspect.Signature | None:
        try:
            return inspect.signature(self.fun)
        except (TypeError, ValueError):
            return None

    def _positional(self, name: str, args: Values, kwargs: dict[str, Any]) -> Values:
        """All arguments by position, with defaults; TypeError for one that cannot be passed so."""
        if self._signature is None:
            if kwargs:
                raise TypeError(f"{self.what}: {name} tells no signature; pass {next(iter(kwargs))!r} by position")
            return args
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.what}: {name}: {error}") from None
        bound.apply_defaults()
        for key in bound.kwargs:
            if key in kwargs:
                raise TypeError(
                    f"{self.what}: {name} has the keyword-only argument {key!r}, but rules take all arguments by "
                    "position; make it a positional one"
                )
        return bound.args

    def _traced(self, args: Values, rules: Values) -> CustomCallTrace:
        """The function traced for these arguments; those at `nondiff_argnums` are passed to it as they are."""
        fun, name = self.fun, name_of(self.fun)
        taken = sorted({n % len(args) if n < 0 else n for n in self.nondiff_argnums})
        fixed = [(i, args[i]) for i in taken if i < len(args)]
        positions = [i for i in range(len(args)) if i not in taken]
        leaves, in_tree = flatten_call((tuple(args[i] for i in positions), {}))
        names = ArgNames(fun, in_tree, positions)
        avals = tuple(checked_avals(leaves, names, name, self.instead))
        values = leaves if is_concrete(leaves) else None
        of_others = functools.partial(_call_with_fixed, fun, fixed)
        kind = Builder if is_own(fun) else kind_of_trace()
        traced = trace(of_others, in_tree, avals, values, names, name, derivative_by=A_RULE, kind=kind)
        types = CallTypes(name, in_tree, avals, traced.out_tree, tuple(traced.jaxpr.out_avals), names)
        closed = closed_over(*rules, fixed)
        return CustomCallTrace(fun, leaves, traced, closed, CallSite(types, fixed, closed, leaves, traced))


def _is_known(*things: Any) -> bool:
    """Whether a call is not part of a program: nothing is traced, or nothing that is traced is in these."""
    builder = state.builder
    return builder is None or (builder.evaluates and Tracer not in map(type, things) and not closed_over(*things))


def _call_with_fixed(fun: Callable[..., Any], fixed: Sequence[tuple[int, Any]], *others: Any) -> Any:
    return fun(*with_fixed(fixed, others))


api_boundary_methods(CustomFunction)
