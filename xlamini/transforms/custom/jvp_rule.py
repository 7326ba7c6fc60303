"""Rules for forward mode that a user wrote, as jaxprs.

    (primals, nonzero tangents)  ->  (outputs, nonzero tangents of outputs)

The user's rule is traced when a derivative is first asked for. For a batched call its jaxpr is batched.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import config
from xlamini.core.dtypes import float0
from xlamini.core.errors import UnexpectedTracerError
from xlamini.core.jaxpr import Jaxpr
from xlamini.core.named_axes import axes_here, named_axis
from xlamini.core.primitive import Axis
from xlamini.core.pytree import unflatten
from xlamini.core.structure import RewriteRule
from xlamini.core.tangents import is_differentiable, tangent_aval
from xlamini.core.tracer import Tracer, build
from xlamini.interpreters.batch import batch
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.primitives.convert import convert
from xlamini.primitives.slice import index_in_dim
from xlamini.transforms.arguments import name_of
from xlamini.transforms.custom.check_rules import Numbers, check_tangents, evaluated
from xlamini.transforms.custom.rules import (
    CustomCall,
    RuleName,
    SymbolicZero,
    checked_pair,
    checked_tree,
    checked_types,
    current,
    here,
    stand_for,
    values_at,
    zero_tangent,
)
from xlamini.transforms.higher_order import Mask, chosen, given, inverse, merged, nonzero_of, with_zeros
from xlamini.transforms.tracing import Trace


class Pushed(NamedTuple):
    """A rule as a jaxpr, and which outputs have a tangent."""

    jaxpr: Jaxpr
    nonzero_out: Mask


class JvpRule(RewriteRule):
    """A rule for forward mode. `traced(nonzero)` gives its jaxpr for tangents of the marked operands."""

    name: RuleName

    def __init__(self) -> None:
        self._known: dict[Any, Pushed] = {}

    def traced(self, nonzero: Mask) -> Pushed:
        key = nonzero, config.trace_context_key(), axes_here()
        found = self._known.get(key)
        if found is None:
            found = self._traced(nonzero)
            if not any(type(x) is Tracer for x in found.jaxpr.consts):
                self._known[key] = found
        return found

    def _traced(self, nonzero: Mask) -> Pushed:
        raise NotImplementedError

    def pushed(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The outputs and their tangents."""
        jaxpr, nonzero_out = self.traced(nonzero_of(tangents))
        flat = evaluate(jaxpr, _typed(jaxpr, [*primals, *given(tangents)]))
        count = len(nonzero_out)
        return flat[:count], with_zeros(jaxpr.out_avals[:count], nonzero_out, flat[count:])

    def linearized(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The same under a `TangentBuilder`; ValueError if an output depends on a tangent."""
        jaxpr, nonzero_out = self.traced(nonzero_of(tangents))
        count, slopes = len(nonzero_out), given(tangents)
        unknown = (False,) * len(primals) + (True,) * len(slopes)
        halves = partial_eval(jaxpr, unknown, (False,) * count + (True,) * sum(nonzero_out))
        self._check_known(halves.unknown_out[:count])
        operands = _typed(jaxpr, [*primals, *slopes])
        known = operands[: len(primals)]
        outs, residuals = halves.parted(known, evaluate(halves.known, known))
        out_tangents = evaluate(halves.unknown, [*residuals, *operands[len(primals) :]])
        return outs, with_zeros(jaxpr.out_avals[:count], nonzero_out, out_tangents)

    def _check_known(self, unknown: Sequence[bool]) -> None:
        if any(unknown):
            raise ValueError(
                f"{self.name}: the primal output that it returns depends on a tangent, so that reverse mode cannot "
                "compute it; compute it from the primals alone"
            )

    def batched(self, axis: Axis, dims: Sequence[int | None], out_batched: Mask | None = None) -> BatchedJvp:
        """The rule of the batched function; outputs (those in `out_batched`) and tangents have the batch at 0."""
        return BatchedJvp(self, axis, tuple(dims), out_batched)

    def __repr__(self) -> str:
        return name_of(self.name.rule)


def _typed(jaxpr: Jaxpr, operands: Sequence[Any]) -> list[Any]:
    """Operands with the weak types of the jaxpr's inputs."""
    return [convert(x, v.aval.dtype, v.aval.weak_type) for x, v in zip(operands, jaxpr.invars, strict=True)]


class UserJvp(JvpRule):
    """The user's rule at one call. Its operands are what it closes over (`closed`), then the call's own."""

    def __init__(
        self, what: str, rule: Callable[..., Any], symbolic_zeros: bool, call: CustomCall, closed: Sequence[Tracer] = ()
    ):
        super().__init__()
        self.name, self.symbolic_zeros = RuleName(what, rule, call.name), symbolic_zeros
        self.fixed, self.in_tree, self.names = call.fixed, call.in_tree, call.names
        self.out_tree, self.out_avals = call.traced.out_tree, tuple(call.traced.jaxpr.out_avals)
        self.closed: tuple[Any, ...] = tuple(x.variable for x in closed)
        self.avals = (*(x.aval for x in closed), *call.avals)
        self.point = here([*closed, *call.leaves])
        self.traced_fun = call.traced if config.debug_custom_rules.value else None
        self.now = tuple(getattr(current(x), "variable", None) for x in closed)

    def _traced(self, nonzero: Mask) -> Pushed:
        count, first = len(self.avals), len(self.closed)
        nonzero_out: list[bool] = []

        def flat(*operands: Any) -> list[Any]:
            stand_for(self.closed, operands[:first])
            tangents = self._tangents(nonzero, operands[count:])
            primals = self._tree(operands[first:count])
            outs, found = self._checked(self.name.rule(*self.fixed, primals, self._tree(tangents)))
            nonzero_out.extend(t is not None for t in found)
            return [*outs, *(t for t in found if t is not None)]

        slopes = [tangent_aval(a) for a, nz in zip(self.avals, nonzero, strict=True) if nz]
        names = _names(self, nonzero)
        with _explaining(self.name):
            jaxpr, _ = build(flat, [*self.avals, *slopes], name_of(self.name.rule), names, self._values(len(slopes)))
        pushed = Pushed(jaxpr, tuple(nonzero_out))
        if self.traced_fun is not None:
            self._compare(self.traced_fun, pushed, nonzero)
        return pushed

    def _tree(self, leaves: Sequence[Any]) -> Any:
        return unflatten(self.in_tree, leaves)[0]

    def _tangents(self, nonzero: Mask, tangents: Sequence[Any]) -> list[Any]:
        """A tangent for every argument: nobody asks how what a rule closes over changes."""
        first = len(self.closed)
        own, marks = self.avals[first:], nonzero[first:]
        zeros = [zero_tangent(a, self.symbolic_zeros) for a in chosen(own, inverse(marks))]
        return merged(marks, tangents[sum(nonzero[:first]) :], zeros)

    def _values(self, count: int) -> list[Any] | None:
        """The numbers behind the operands, where Python may ask for them."""
        values = values_at(self.point)
        return None if values is None else [*values, *[None] * count]

    def _compare(self, fun: Trace, pushed: Pushed, nonzero: Mask) -> None:
        """ValueError if the rule gives other tangents than finite differences."""
        numbers, first = Numbers(), len(self.closed)
        captured, values = list(map(numbers.of, fun.captured)), values_at(self.point)
        own = [*self.now, *[None] * len(self.names)]
        operands = list(map(numbers.of, values) if values is not None else map(numbers.like, self.avals, own))
        pairs = zip(self.avals, nonzero, strict=True)
        slopes = [numbers.tangent(a) if nz else np.zeros(a.shape, float0) for a, nz in pairs]

        def function(primals: list[Any]) -> list[Any]:
            return evaluated(numbers, fun.jaxpr, [*captured, *primals])

        def rule(primals: list[Any], tangents: list[Any]) -> list[Any]:
            given_to = chosen([*slopes[:first], *tangents], nonzero)
            flat = evaluated(numbers, pushed.jaxpr, [*operands[:first], *primals, *given_to])
            still = [np.zeros(a.shape) for a in chosen(self.out_avals, inverse(pushed.nonzero_out))]
            return merged(pushed.nonzero_out, flat[len(self.out_avals) :], still)

        check_tangents(self.name, function, rule, operands[first:], slopes[first:], self.out_tree)

    def _checked(self, result: Any) -> tuple[list[Any], list[Any]]:
        """Flat outputs, and their tangents, None for those that are zero for sure; TypeError for what does not fit."""
        out, slope = checked_pair(self.name, result, "primal output, tangent output")
        outs = checked_tree(self.name, "primal output", out, self.out_tree)
        like = f"what {self.name.of} itself returns there"
        checked_types(self.name, "primal output", outs, self.out_tree, self.out_avals, like)
        outs = [convert(x, a.dtype, a.weak_type) for x, a in zip(outs, self.out_avals, strict=True)]
        return outs, self._checked_tangents(checked_tree(self.name, "tangent output", slope, self.out_tree))

    def _checked_tangents(self, slopes: Sequence[Any]) -> list[Any]:
        wanted = [tangent_aval(a) for a in self.out_avals]
        like = "the tangent of the output there"
        checked_types(self.name, "tangent output", slopes, self.out_tree, wanted, like)
        return [
            None if isinstance(t, SymbolicZero) or not is_differentiable(a) else convert(t, a.dtype, a.weak_type)
            for t, a in zip(slopes, self.out_avals, strict=True)
        ]


@contextmanager
def _explaining(rule: RuleName) -> Iterator[None]:
    """Say of a tracer that a rule cannot have how else it gets the value."""
    try:
        yield
    except UnexpectedTracerError as error:
        problem, *leak = str(error).split(". A traced value must")
        if leak:
            error.args = (f"{rule}: {problem}; make the value an argument of {rule.of}",)
        raise


def _names(rule: UserJvp, nonzero: Mask) -> list[str]:
    """What messages call the operands."""
    own = [*[f"a value that {rule.name.rule} closes over"] * len(rule.closed), *rule.names]
    return [*own, *(f"tangent of {name}" for name, nz in zip(own, nonzero, strict=True) if nz)]


class BatchedJvp(JvpRule):
    """The rule for operands with batch dimensions at `dims`; a tangent has its own where its primal has it."""

    def __init__(self, rule: JvpRule, axis: Axis, dims: Sequence[int | None], out_batched: Mask | None):
        super().__init__()
        self.rule, self.axis, self.dims, self.name = rule, axis, tuple(dims), rule.name
        self.out_batched = out_batched

    def _traced(self, nonzero: Mask) -> Pushed:
        with named_axis(self.axis):
            single, nonzero_out = self.rule.traced(nonzero)
        dims = (*self.dims, *(d for d, nz in zip(self.dims, nonzero, strict=True) if nz))
        count = len(nonzero_out)
        force = (*(self.out_batched or (True,) * count), *(True,) * sum(nonzero_out))
        batched, found = batch(single, self.axis, dims, force)
        wrong = [d is not None and not f for d, f in zip(found, force, strict=True)]
        return Pushed(_with_first(batched, wrong, found) if any(wrong) else batched, nonzero_out)


def _with_first(jaxpr: Jaxpr, places: Sequence[bool], dims: Sequence[int | None]) -> Jaxpr:
    """The jaxpr with the first example of outputs that are the same for all examples, though computed for each."""

    def flat(*operands: Any) -> list[Any]:
        outs = evaluate(jaxpr, operands)
        return [index_in_dim(x, 0, d or 0, False) if p else x for x, p, d in zip(outs, places, dims, strict=True)]

    return build(flat, jaxpr.in_avals, jaxpr.name)[0]
