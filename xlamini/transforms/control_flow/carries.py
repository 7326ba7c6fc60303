"""The carry of a loop, and the fixed point of its type: the body must return the carry in the type that it takes.

`Carry(what, body, value, given_as, position)` flattens and checks the initial carry; `trace_body(trace_for)` traces the
body for its type. A weakly typed carry (a Python number) gets the promoted dtype if the body returns another one, and
the body is traced again, as in JAX. Where only weak types differ, the loop has those that the body returns, and what is
computed in the body has the types of the one trace. A Python number that the body returns for a strongly typed carry of
the same kind (float, int or complex) is converted. Any other difference is an error that lists both types of every such
leaf.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from xlamini.core import (
    Avals,
    Jaxpr,
    Literal,
    ShapedArray,
    first_difference,
    flatten_from_user,
    literal,
    result_type,
    rewrite,
    scalar_type_of,
)
from xlamini.core.errors import TypePromotionError
from xlamini.core.program.hi_types import fits
from xlamini.core.sharding.manual_axes import divergent
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives import convert, in_dtype, placed_as
from xlamini.primitives.collectives.varying import varying_along
from xlamini.staging import LeafNames, Trace, checked_avals, name_of
from xlamini.staging.trace.arguments import parameter_names

if TYPE_CHECKING:
    from xlamini.core.pytree.nodes import PyTreeDef


SHOWN = 4
"""How many differing leaves an error lists."""


def check_function(what: str, name: str, fun: Any) -> None:
    """TypeError unless the argument `name` of `what` is a function."""
    if not callable(fun):
        raise TypeError(f"{what}: {name} must be a function, got {fun!r} of type {type(fun).__name__}")


class Carry:
    """The initial carry that the user gave to `what` (such as "scan") as its argument `given_as`.

    `position` is the index of the carry among the parameters of `body`; errors use the name of that parameter.
    """

    body: Callable[..., Any]
    position: int
    given_as: str
    what: str
    leaves: list[Any]
    tree: PyTreeDef

    def __init__(self, what: str, body: Callable[..., Any], value: Any, given_as: str, position: int = 0):
        self.what, self.given_as = what, given_as
        self.body, self.position = body, position
        self.leaves, self.tree = flatten_from_user(value)
        names = LeafNames(given_as, self.tree)
        self.avals: list[ShapedArray] = checked_avals(self.leaves, names, what)

    @property
    def body_name(self) -> str:
        return name_of(self.body)

    @property
    def name(self) -> str:
        """The name of the carry in the body's signature."""
        return parameter_names(self.body)(self.position)

    def trace_body(
        self, trace_for: Callable[[Avals], Trace], part: Callable[[Any], Any] = lambda tree: tree
    ) -> tuple[list[Any], Trace, Avals]:
        """The initial leaves in the loop's types, the body for these types, and the types for which it was traced.

        `trace_for(avals)` traces the body for a carry of these types; the carry comes first among its outputs.
        `part(out_tree)` selects the structure of the carry from the structure of all outputs.
        """
        avals = list(map(divergent, self.avals))
        while True:
            traced = trace_for(avals)
            self._check_structure(part(traced.out_tree))
            returned = traced.jaxpr.out_avals[: len(avals)]
            promoted = list(map(_promoted, avals, returned))
            if promoted == avals:
                break
            avals = promoted
        self._check_types(avals, returned)
        types = tuple(map(_as_returned, avals, returned))
        body = with_inputs_of(traced.jaxpr, len(traced.captured) + self.position, types)
        return (
            [_in_type(x, aval) for x, aval in zip(self.leaves, types, strict=True)],
            traced._replace(jaxpr=with_outputs_of(body, types)),
            avals,
        )

    def _check_structure(self, returned: Any) -> None:
        if returned == self.tree:
            return
        where = first_difference(self.tree, returned, (self.name, f"the returned {self.name}"))
        if where is not None:
            raise TypeError(
                f"{self.what} body function carry input and carry output must have the same pytree structure: "
                f"{self.body_name} must return a carry with the structure of the one it takes, but "
                f"{where}; return the same containers as it takes, or start from {self.given_as} of the other structure"
            )

    def _check_types(self, avals: Avals, returned: Avals) -> None:
        wrong = [i for i, a in enumerate(avals) if not _fits(a, returned[i])]
        if not wrong:
            return
        names = LeafNames(self.name, self.tree)
        lines = [f"  {names[i]} is given as {_shown(avals[i])}, returned as {_shown(returned[i])}" for i in wrong]
        if len(lines) > SHOWN:
            lines[SHOWN:] = [f"  and {len(lines) - SHOWN} more"]
        listed, first = "\n".join(lines), wrong[0]
        raise TypeError(
            f"{self.what} body function carry input and carry output must have equal types: {self.body_name} must "
            f"return a carry of the types it takes, but\n{listed}\n"
            f"{self._fix(avals[first], returned[first], names[first])}"
        )

    def _fix(self, aval: ShapedArray, returned: ShapedArray, name: str) -> str:
        start = self.given_as + name.removeprefix(self.name)
        if aval.memory_space is not returned.memory_space:
            return (
                f"Return device_put(x, memory.{aval.memory_space}) of it from {self.body_name}, or start "
                f"from {start} in the other memory."
            )
        if aval.dtype == returned.dtype and aval.shape == returned.shape:
            return f"Return xlamini.reshard of it from {self.body_name}, or start from {start} in the other sharding."
        if aval.shape == returned.shape:
            return (
                f"Return .astype('{aval.dtype.name}') of it from {self.body_name}, or start from {start} of dtype "
                f"{returned.dtype.name}."
            )
        return f"Return an array of shape {aval.shape} from {self.body_name}, or start from {start} of the other shape."


def with_outputs_of(jaxpr: Jaxpr, avals: tuple[ShapedArray, ...]) -> Jaxpr:
    """The jaxpr with its first outputs converted to these types; the jaxpr itself if they have them already.

    Rewrites of loop bodies need it: their output carry may differ from the input carry in weak type, vma or sharding.
    """
    return jaxpr if tuple(jaxpr.out_avals[: len(avals)]) == avals else _converted(jaxpr, 0, (), avals)


def with_inputs_of(jaxpr: Jaxpr, first: int, avals: tuple[ShapedArray, ...]) -> Jaxpr:
    """The jaxpr with inputs of these types from number `first` on, which it converts to those that it computes with."""
    own = jaxpr.in_avals[first : first + len(avals)]
    return jaxpr if tuple(own) == avals else _converted(jaxpr, first, avals, ())


@rewrite
def _converted(jaxpr: Jaxpr, first: int, ins: tuple[ShapedArray, ...], outs: tuple[ShapedArray, ...]) -> Jaxpr:
    """The jaxpr with inputs of the types `ins` from number `first` on, and with first outputs of the types `outs`."""
    avals, end = jaxpr.in_avals, first + len(ins)

    def converted(*operands: Any) -> list[Any]:
        own = map(_in_type, operands[first:end], avals[first:end])
        results = evaluate(jaxpr, [*operands[:first], *own, *operands[end:]])
        return [*map(_in_type, results, outs), *results[len(outs) :]]

    return build(converted, [*avals[:first], *ins, *avals[end:]], jaxpr.name)[0]


def _promoted(aval: ShapedArray, returned: ShapedArray) -> ShapedArray:
    """The next type of a carry for which the body returned `returned`: promoted dtype, joined vma and sharding."""
    aval = aval.varying(aval.vma | returned.vma)
    if aval.explicit_sharding is None and aval.ndim == returned.ndim:
        aval = aval.with_sharding(returned.explicit_sharding)
    if not aval.weak_type or aval.dtype == returned.dtype:
        return aval
    try:
        dtype = result_type(aval, returned)
    except (TypePromotionError, TypeError):
        return aval
    return aval.update(dtype=dtype, weak_type=False) if dtype == returned.dtype else aval


def _as_returned(aval: ShapedArray, returned: ShapedArray) -> ShapedArray:
    """The loop's type of a carry that the body takes as `aval`."""
    return aval.update(weak_type=returned.weak_type) if aval.dtype == returned.dtype else aval


def _in_type(x: Any, aval: ShapedArray) -> Any:
    if type(x) is Literal:
        return literal(x.val, aval.dtype, aval.weak_type)
    if getattr(x, "aval", None) is None:
        return in_dtype(x, aval.dtype, aval.weak_type)
    return placed_as(varying_along(convert(x, aval.dtype, aval.weak_type), aval.vma), aval)


def _fits(aval: ShapedArray, returned: ShapedArray) -> bool:
    """Whether a returned carry has the carry's type, or is weakly typed and of the same kind."""
    if returned.memory_space is not aval.memory_space:
        return False
    if returned.explicit_sharding is not None and returned.explicit_sharding is not aval.explicit_sharding:
        return False
    if aval.shape != returned.shape:
        return False
    if aval.dtype == returned.dtype or fits(returned, aval):
        return True
    numbers = returned.weak_type and not hasattr(aval.dtype, "physical_shape")
    return numbers and scalar_type_of(aval.dtype) is scalar_type_of(returned.dtype)


def _shown(aval: ShapedArray) -> str:
    return aval.str_short(short_dtypes=False) + (" (weakly typed)" if aval.weak_type else "")
