"""A function with rules of the user's own: what custom_jvp, custom_vjp and custom_vmap share.

While something is traced its call is one equation, with the function as a jaxpr and the rules as params; a rule is
traced when somebody first asks for what it gives, as it often calls the function itself. Else it is a plain call.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

from xlamini.core.api_boundary import edge_methods
from xlamini.core.avals import ShapedArray
from xlamini.core.jaxpr import Jaxpr, Var
from xlamini.core.pytree import flatten_from_user
from xlamini.core.tracer import Tracer, state
from xlamini.staging.trace.arguments import ArgNames, avals_of, check_callable, check_values, name_of
from xlamini.staging.trace.static_args import Names, Numbers, Selected
from xlamini.staging.trace.tracing import Trace, rebuilt, trace
from xlamini.transforms.custom.closures import closed_over
from xlamini.transforms.custom.point import numbers_known


class CustomCall(NamedTuple):
    """One call: its fixed arguments with their positions, the leaves of the others, its trace.

    `closed` are the tracers that the rules close over.
    """

    name: str
    fixed: tuple[tuple[int, Any], ...]
    leaves: list[Any]
    in_tree: Any
    names: Sequence[str]
    avals: Sequence[ShapedArray]
    traced: Trace
    closed: Sequence[Tracer]

    @property
    def operands(self) -> list[Any]:
        """What the function captured, what its rules close over, the arguments."""
        return [*self.traced.captured, *self.closed, *self.leaves]

    @property
    def jaxpr(self) -> Jaxpr:
        """The function as a jaxpr of the operands; it does not read those that are for the rules."""
        jaxpr, count = self.traced.jaxpr, len(self.traced.captured)
        further = [Var(x.aval) for x in self.closed]
        invars = [*jaxpr.invars[:count], *further, *jaxpr.invars[count:]]
        return jaxpr.replace(invars=invars) if further else jaxpr


class Customized:
    """A function whose calls are equations with rules. A subclass says how the equation is made, in `_staged`."""

    what: ClassVar[str]
    setter: ClassVar[str]
    """How a rule is set, for the message that says there is none."""
    instead: ClassVar[str] = ", or list it in nondiff_argnums"
    """What to do with an argument that is no array."""

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Numbers = (), nondiff_argnames: Names = ()):
        check_callable(self.what, fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.nondiff_argnums = Selected("nondiff", fun, nondiff_argnums, nondiff_argnames, self.what).nums

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name, rules = name_of(self.fun), self._rules()
        if not rules:
            raise AttributeError(
                f"{self.what}: {name} has no rule yet; set one before it is called, with {name}.{self.setter}"
            )
        every = positional(self.what, name, self._signature, args, kwargs)
        if state.builder is None:
            return self.fun(*every)
        call = self._traced(every, rules)
        return rebuilt(call.traced.out_tree, self._staged(call))

    def _rules(self) -> list[Any]:
        """What the user has set."""
        raise NotImplementedError

    def _staged(self, call: CustomCall) -> list[Any]:
        """The call as an equation of the program being traced."""
        raise NotImplementedError

    @functools.cached_property
    def _signature(self) -> inspect.Signature | None:
        try:
            return inspect.signature(self.fun)
        except (TypeError, ValueError):
            return None

    def _traced(self, args: Sequence[Any], rules: Sequence[Any]) -> CustomCall:
        """The function traced for these arguments; those at the positions `nondiff_argnums` reach it as they are."""
        fun, name = self.fun, name_of(self.fun)
        taken = sorted({n % len(args) if n < 0 else n for n in self.nondiff_argnums})
        fixed = tuple((i, args[i]) for i in taken if i < len(args))
        positions = [i for i in range(len(args)) if i not in taken]
        leaves, in_tree = flatten_from_user((tuple(args[i] for i in positions), {}))
        names = ArgNames(fun, in_tree, positions)
        avals = avals_of(leaves, names, name, self.instead)
        check_values(leaves, names, name)
        values = leaves if numbers_known(leaves) else None
        traced = trace(lambda *others: fun(*with_fixed(fixed, others)), in_tree, avals, values, names, name)
        return CustomCall(name, fixed, leaves, in_tree, names, avals, traced, closed_over(*rules, fixed))


edge_methods(Customized)


def with_fixed(fixed: Sequence[tuple[int, Any]], others: Sequence[Any]) -> list[Any]:
    """All arguments of a call in their places."""
    full = list(others)
    for position, value in fixed:
        full.insert(position, value)
    return full


def positional(
    what: str, name: str, signature: inspect.Signature | None, args: Sequence[Any], kwargs: dict[str, Any]
) -> Sequence[Any]:
    """All arguments of a call in their places, those left out with their defaults; TypeError if one has no place."""
    if signature is None:
        if kwargs:
            raise TypeError(f"{what}: {name} tells no signature; pass {next(iter(kwargs))!r} by position")
        return args
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(f"{what}: {name}: {error}") from None
    bound.apply_defaults()
    if bound.kwargs:
        raise TypeError(
            f"{what}: {name} has the keyword-only argument {next(iter(bound.kwargs))!r}, but rules take all arguments "
            "by position; make it a positional one"
        )
    return bound.args
