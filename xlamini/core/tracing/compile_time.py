"""Evaluation in the middle of a trace, of all that does not depend on what is traced.

So it is in `ensure_compile_time_eval`, and in transformations outside of jit: `grad(f)(x)` traces what depends on `x`,
but an operation on known values runs at once, as it would outside. Its result is an array, which may be kept, tested
and passed to other libraries; the program takes it as a hidden argument.
"""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from xlamini.core import hooks
from xlamini.core.program.avals import Params, Values, aval_of, types_of_values
from xlamini.core.program.bindable import effects_of
from xlamini.core.program.hi_types import is_hi_value, is_mutable_value, lowered
from xlamini.core.program.jaxpr import Equation, Jaxpr, close_over
from xlamini.core.pytree import tree_leaves
from xlamini.core.sharding.manual_axes import named_axes
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import Builder, Tracer, active


@contextmanager
def ensure_compile_time_eval() -> Iterator[None]:
    """Evaluate operations now, while a function is traced: their results are arrays, with numbers to branch on.

    An operation on a traced value, which has no number yet, becomes part of the traced program as elsewhere. Also a
    decorator.

    >>> @xlamini.jit
    ... def steps(x):
    ...     with xlamini.ensure_compile_time_eval():
    ...         count = int(xlamini.numpy.ceil(xlamini.numpy.log2(10)))
    ...     return x * count
    >>> steps(1.0)
    Array(4., dtype=float32, weak_type=True)
    """
    with active(None if state.builder is None else Evaluation("ensure_compile_time_eval")):
        yield


class AtOnce(Builder):
    """Keeps the equations that depend on its inputs, passes others to the builder around it, and runs what is known."""

    __slots__ = ()

    def __init__(self, *args: Any):
        super().__init__(*args)
        self.evaluates = True

    @property
    def home(self) -> Builder:
        """Where an operation is traced that cannot run at once."""
        return self

    def _around(self, values: Values) -> Builder | None:
        """The builder for an operation on these values: this one, one around it, or None if all are known."""
        if not self.evaluates:
            return self
        tracers = tracers_in(values)
        for x in tracers:
            if x.builder is self or x.variable in self.environment:
                return self
        return self.parent if tracers else None

    def _builder_of(self, primitive: Any, operands: Values, params: Params) -> Builder | None:
        """The builder for an equation; its own axes are known here alone, and effects keep their order."""
        builder = self._around(operands)
        if builder is self or (state.axes and named_axes(primitive, params)):
            return self.home
        effects = effects_of(primitive, [aval_of(x) for x in operands], params)
        return self.home if effects and self._has_effects() else builder

    def _has_effects(self) -> bool:
        """Whether an equation of this program, or of one around it, is still to have an effect."""
        around = self.parent is not None and self.parent.evaluates and self.parent._has_effects()
        return around or any(eqn.effects for eqn in self.equations)

    def emit(self, primitive: Any, operands: Values, params: Params) -> Any:
        if not self.evaluates:
            return Builder.emit(self, primitive, operands, params)
        for x in operands:  # a loop, as this runs for every equation
            if type(x) is Tracer and x.builder is self:
                return Builder.emit(self, primitive, operands, params)
        builder = self._builder_of(primitive, operands, params)
        if builder is self:
            return Builder.emit(self, primitive, operands, params)
        with active(builder):
            return primitive.bind(*operands, **params)

    def replay(self, eqn: Equation, operands: Values) -> list[Any]:
        builder = self._builder_of(eqn.primitive, operands, eqn.params)
        if builder is self:
            return super().replay(eqn, operands)
        with active(builder):
            out = eqn.primitive.bind(*operands, **eqn.params)
        return list(out) if eqn.primitive.multiple_results else [out]

    def inline(self, jaxpr: Jaxpr, operands: Values, provenance: Any = None) -> list[Any]:
        if not self.evaluates:
            return self.copied(jaxpr, operands, provenance)
        every = [*jaxpr.consts, *operands]
        fixed = jaxpr.effects or (state.axes and any(map(_named_axes, jaxpr.eqns)))
        builder = self.home if fixed else self._around(every)
        if builder is self:
            return self.copied(jaxpr, operands, provenance)
        with active(builder):
            return hooks.evaluate_jaxpr(close_over(jaxpr), every)

    def home_of_call(self, args: Values, kwargs: Mapping[str, Any]) -> Builder | None:
        """The builder for a call of a library function, with all that it computes; None to run it at once."""
        for x in args:  # a loop, as above
            if type(x) is Tracer and x.builder is self:
                return self
        return self._around(tree_leaves((args, kwargs)))


class Evaluation(AtOnce):
    """That of `ensure_compile_time_eval`, which traces nothing itself."""

    __slots__ = ()

    @property
    def home(self) -> Builder:
        parent: Any = self.parent
        return parent


def tracers_in(values: Values) -> list[Tracer]:
    """The tracers among values and among the arrays that values of users' classes are made of."""
    return [part for x in values for part in (_parts(x) if types_of_values else (x,)) if type(part) is Tracer]


def _parts(x: Any) -> Sequence[Any]:
    return lowered([aval_of(x)], [x]) if is_hi_value(x) and not is_mutable_value(x) else (x,)


def _named_axes(eqn: Equation) -> Sequence[Any]:
    return named_axes(eqn.primitive, eqn.params)


def is_part_of_eager_trace() -> bool:
    """Whether what is traced becomes part of a program around it that evaluates what is known."""
    builder = state.builder
    while builder is not None and not builder.evaluates:
        builder = builder.parent
    return builder is not None
