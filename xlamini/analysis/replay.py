"""A run equation by equation, as if the user's lines were plain Python: for `pdb`, for loops over steps, for searches.

Each equation runs in a frame whose file, line and function are the user's, and whose variables have the user's names.
So a breakpoint of `pdb` on a line stops where the line computes, and the debugger shows the source and the values.
"""
from __future__ import annotations

import ast
import itertools
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from xlamini.analysis.places import EquationLocation, place_of, span
from xlamini.analysis.unroll import Straight, straightened
from xlamini.core import Atom, Equation, Literal
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.transforms.derivatives.diff_args import DiffArgs


class Step(NamedTuple):
    """An operation that has run: its place in the user's program, and its results."""

    place: EquationLocation
    values: tuple[Any, ...]

    @property
    def value(self) -> Any:
        """The result; the first, if there are several."""
        return self.values[0]

    def __str__(self) -> str:
        name = f"{self.place.variable} = " if self.place.variable else ""
        return f"{self.place}\n    {name}{self.place.primitive}: {', '.join(map(span, self.values))}"

    __repr__ = __str__


class Replay:
    """The steps of a run, which happen as they are asked for; `run()` gives the function's result."""

    def __init__(self, straight: Straight, arguments: dict[str, Any], result_of: Callable[[list[Any]], Any]):
        self._straight, self._values, self._result_of = straight, {}, result_of
        self._frames: dict[str, dict[str, Any]] = {straight.jaxpr.name: dict(arguments)}
        self._steps = self._all()

    def __iter__(self) -> Iterator[Step]:
        return self._steps

    def __next__(self) -> Step:
        return next(self._steps)

    def until(self, condition: Callable[[np.ndarray], Any]) -> Step | None:
        """The next step of which a result fulfils the condition in any element; None if there is none.

        >>> xlamini.debug.replay(lambda x: 10.0 * (x + 1.0))(2.0).until(lambda v: v > 20).place.primitive
        'mul'
        """
        found = (step for step in self._steps if any(np.any(condition(np.asarray(v))) for v in step.values))
        return next(found, None)

    def run(self) -> Any:
        """Run the steps that are left; the function's result."""
        for _ in self._steps:
            pass
        return self._result_of([self._value(a) for a in self._straight.jaxpr.outvars])

    def _value(self, atom: Atom) -> Any:
        return atom.val if type(atom) is Literal else self._values[atom]

    def _all(self) -> Iterator[Step]:
        steps = self._straight.steps(self._values)
        for eqn, place in zip(self._straight.jaxpr.eqns, _places(self._straight), strict=True):
            self._run_line(eqn, place.variable, lambda: next(steps))
            yield Step(place, tuple(self._values[v] for v in eqn.outvars))

    def _run_line(self, eqn: Equation, name: str | None, step: Callable[[], Any]) -> None:
        """Run the equation in a frame that looks like the user's line."""
        source = eqn.provenance.source
        if source is None:
            step()
            return

        def result() -> Any:
            step()
            return self._values[eqn.outvars[0]] if eqn.outvars else None

        frame = self._frames.setdefault(source.function.rpartition(".")[2], {})
        frame["__step__"] = result
        exec(_line(source.file, source.line, source.function, name), frame)


def _places(straight: Straight) -> list[EquationLocation]:
    """The place of each equation. The last one of a call that assigns a variable has its name."""
    sources = [(eqn.provenance.source, loops) for eqn, loops in zip(straight.jaxpr.eqns, straight.loops, strict=True)]
    places = list(map(place_of, straight.jaxpr.eqns, straight.loops))
    alike = [here == later for here, later in itertools.pairwise([*sources, None])]
    return [place._replace(variable=None) if goes_on else place for place, goes_on in zip(places, alike, strict=True)]


@contextmanager
def _untraced() -> Iterator[None]:
    """No debugger stops inside: the function is traced now, and its values come later."""
    debugger = sys.gettrace()
    sys.settrace(None)
    try:
        yield
    finally:
        sys.settrace(debugger)


def _line(file: str, line: int, function: str, target: str | None) -> CodeType:
    """The code of a line that runs `__step__()` and gives its result the user's name."""
    name = target if target is not None and target.isidentifier() else "_"
    tree = ast.increment_lineno(ast.parse(f"{name} = __step__()"), line - 1)
    short = function.rpartition(".")[2]
    return compile(tree, file, "exec").replace(co_name=short, co_qualname=function)


def replay(f: Callable[..., Any]) -> Callable[..., Replay]:
    """A function that runs `f` step by step, in plain Python, with the user's lines and names.

    The result takes the arguments of `f` and returns an iterator over steps; each has a `place` (file, line, variable,
    operation, iteration of loops) and `values`. Loops are unrolled, of a `cond` the branch that runs is there, and what
    transformations add is there with the line that it comes from: `replay(grad(f))` shows the backward pass.

    Under `pdb` a breakpoint on a line of `f` stops each time that the line computes something.

    >>> def f(x):
    ...     y = x * x
    ...     return y + 1.0
    >>> steps = list(xlamini.debug.replay(f)(3.0))
    >>> [(step.place.primitive, float(step.value)) for step in steps]
    [('mul', 9.0), ('add', 10.0)]
    """

    @api_boundary
    def replayed(*args: Any, **kwargs: Any) -> Replay:
        with _untraced():
            diff = DiffArgs(f, tuple(range(len(args))), args, kwargs, "replay")
            traced = diff.trace(has_aux=False)
            straight = straightened(traced.jaxpr, diff.operands(traced))
        arguments = dict(zip(diff.names, diff.leaves, strict=True))
        return Replay(straight, arguments, lambda leaves: diff.split(traced, leaves)[0])

    return replayed
